/* A rank that costs nothing: it writes down when it began to run, prints one line, and waits to be killed.
 *
 * Anything with an interpreter was rejected: its own start is longer than what is measured.
 *
 *   stamp FOLDER     leaves FOLDER/<rank>.<restart count> with CLOCK_REALTIME in nanoseconds and the process id
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const char* rank = getenv("RANK");
  const char* restarts = getenv("TORCHELASTIC_RESTART_COUNT");
  if (argc != 2 || rank == NULL || restarts == NULL) return 2;

  char path[4096], hidden[4096], text[64];
  snprintf(path, sizeof path, "%s/%s.%s", argv[1], rank, restarts);
  snprintf(hidden, sizeof hidden, "%s/.%s.%s", argv[1], rank, restarts);
  const int length = snprintf(text, sizeof text, "%lld %d\n", now.tv_sec * 1000000000LL + now.tv_nsec, (int)getpid());
  const int file = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, text, (size_t)length) != length || rename(hidden, path) != 0) return 3;
  close(file);
  if (write(1, "ready\n", 6) != 6) return 4;
  sleep(120);
  return 0;
}
