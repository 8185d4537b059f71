// The beginning and the end, for the languages in which a program may ask for them.
#ifndef AIMASTER_PROBE_PMPI_SESSION_H_
#define AIMASTER_PROBE_PMPI_SESSION_H_

#include "probe/pmpi/pmpi.h"

struct Recorder* BeginSession(void);
void EndBeginning(struct Recorder* recorder, int result);
RecorderTicket BeginEnding(void);
void EndSession(RecorderTicket ticket);

// communicators.c
void RegisterCommunicator(MPI_Comm communicator, const char* name);
void LearnWorldGroup(MPI_Comm world);

#endif  // AIMASTER_PROBE_PMPI_SESSION_H_
