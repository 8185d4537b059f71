#include "notify/exchange.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace aimaster::notify {
namespace {

constexpr long kRedirectsMax = 5;
constexpr milliseconds kConnectMost{10'000};

struct ListCloser {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct EasyCloser {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using List = std::unique_ptr<curl_slist, ListCloser>;

List MakeList(const std::vector<std::string>& texts) {
  List list;
  for (const std::string& text : texts) {
    curl_slist* longer = curl_slist_append(list.get(), text.c_str());
    if (longer == nullptr) return list;
    static_cast<void>(list.release());
    list.reset(longer);
  }
  return list;
}

// One message under way.
struct Transfer {
  size_t sink = 0;
  SinkType type{};
  std::unique_ptr<CURL, EasyCloser> easy{curl_easy_init()};
  List headers, recipients;
  std::string sent;        // the body, or the mail
  size_t sent_bytes = 0;   // of a mail
  std::string received;    // the body of the answer, its beginning
  std::string last_reply;  // of a mail server: its last line
  Revealed revealed;       // what no answer may show
  std::array<char, CURL_ERROR_SIZE> error{};
};

size_t TakeBody(char* bytes, size_t size, size_t count, void* to) {
  std::string& received = static_cast<Transfer*>(to)->received;
  const size_t wanted = std::min(size * count, kAnswerMaxBytes - std::min(received.size(), kAnswerMaxBytes));
  received.append(bytes, wanted);
  return size * count;  // the rest is of no interest, and no error
}

size_t TakeReply(char* bytes, size_t size, size_t count, void* to) {
  std::string line(bytes, std::min(size * count, kAnswerMaxBytes));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  constexpr std::string_view kGoodbye = "221";  // says nothing of the mail
  if (!line.empty() && !line.starts_with(kGoodbye)) static_cast<Transfer*>(to)->last_reply = std::move(line);
  return size * count;
}

size_t GiveMail(char* to, size_t size, size_t count, void* from) {
  auto* transfer = static_cast<Transfer*>(from);
  const size_t bytes = std::min(size * count, transfer->sent.size() - transfer->sent_bytes);
  std::memcpy(to, transfer->sent.data() + transfer->sent_bytes, bytes);
  transfer->sent_bytes += bytes;
  return bytes;
}

void SetCommon(Transfer& transfer, const Sink& spec) {
  CURL* easy = transfer.easy.get();
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error.data());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(spec.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::min(spec.timeout, kConnectMost).count()));
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!spec.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, spec.ca_file.c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  // Minutes lie between two messages: a connection that was kept would be dead by then, and that looks like a failure.
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
}

std::string ErrorText(CURLcode code, const Transfer& transfer) {
  if (code == CURLE_OK) return "";
  const std::string detail = transfer.error.data();
  return detail.empty() ? curl_easy_strerror(code) : detail;
}

Outcome OutcomeOf(CURLcode code, const Transfer& transfer) {
  const std::string error = ErrorText(code, transfer);
  if (transfer.type == SinkType::kSmtp) return ReadMailAnswer(error, transfer.last_reply, transfer.revealed);
  long status = 0;
  curl_off_t retry_after = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_RETRY_AFTER, &retry_after);
  // An answer that breaks off may have been anything, whatever it began with.
  if (code != CURLE_OK) {
    return {.delivered = false,
            .refused = false,
            .retry_after = {},
            .answer = Readable(WithoutSecrets(error, transfer.revealed), kAnswerShownBytes)};
  }
  return ReadHttpAnswer(transfer.type, status, transfer.received, retry_after, transfer.revealed);
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

}  // namespace

class Exchange::Implementation {
 public:
  Implementation() {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi_ = curl_multi_init();
  }
  ~Implementation() {
    for (const auto& transfer : transfers_) curl_multi_remove_handle(multi_, transfer->easy.get());
    curl_multi_cleanup(multi_);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  Transfer& Begin(size_t sink, const Sink& spec, const Revealed& revealed) {
    auto transfer = std::make_unique<Transfer>();
    transfer->sink = sink;
    transfer->type = spec.type;
    transfer->revealed = revealed;
    SetCommon(*transfer, spec);
    return *transfers_.emplace_back(std::move(transfer));
  }
  void Start(Transfer& transfer) { curl_multi_add_handle(multi_, transfer.easy.get()); }

  std::vector<std::pair<size_t, Outcome>> Perform() {
    int running = 0, left = 0;
    curl_multi_perform(multi_, &running);
    std::vector<std::pair<size_t, Outcome>> ended;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      const auto found = std::ranges::find_if(transfers_, [&](const auto& each) { return each->easy.get() == easy; });
      if (found == transfers_.end()) continue;
      ended.emplace_back((*found)->sink, OutcomeOf(code, **found));
      curl_multi_remove_handle(multi_, easy);
      transfers_.erase(found);
    }
    return ended;
  }

  void Wait(std::span<pollfd> descriptors, milliseconds at_most) {
    std::vector<curl_waitfd> watched;
    for (const pollfd& each : descriptors) {
      watched.push_back({.fd = each.fd,
                         .events = static_cast<short>((each.events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                                                      (each.events & POLLOUT ? CURL_WAIT_POLLOUT : 0)),
                         .revents = 0});
    }
    curl_multi_poll(multi_, watched.data(), static_cast<unsigned>(watched.size()), static_cast<int>(at_most.count()),
                    nullptr);
  }

 private:
  CURLM* multi_ = nullptr;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

Exchange::Exchange() : implementation_(std::make_unique<Implementation>()) {}
Exchange::~Exchange() = default;

void Exchange::Post(size_t sink, const Sink& spec, const Revealed& revealed, const HttpRequest& request) {
  Transfer& transfer = implementation_->Begin(sink, spec, revealed);
  CURL* easy = transfer.easy.get();
  std::vector<std::string> headers = request.headers;
  headers.emplace_back("Expect:");  // the body is small: nothing is won by asking first
  transfer.headers = MakeList(headers);
  transfer.sent = request.body;
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "aimaster");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.sent.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.sent.size()));
  if (spec.follow_redirects) {
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kRedirectsMax);
    curl_easy_setopt(easy, CURLOPT_POSTREDIR, static_cast<long>(CURL_REDIR_POST_ALL));
    // What went out encrypted stays so.
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https:") ? "https" : "http,https");
  }
  implementation_->Start(transfer);
}

void Exchange::Mail(size_t sink, const Sink& spec, const Revealed& revealed, std::string mail) {
  Transfer& transfer = implementation_->Begin(sink, spec, revealed);
  CURL* easy = transfer.easy.get();
  transfer.sent = std::move(mail);
  transfer.recipients = MakeList(spec.to);
  const char* scheme = spec.security == MailSecurity::kTls ? "smtps://" : "smtp://";
  const std::string url = scheme + spec.host + ":" + std::to_string(spec.port) + "/" + HostName();
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  // Never a password, or a word of the message, before the connection is encrypted.
  const long use_ssl = spec.security == MailSecurity::kNone ? CURLUSESSL_NONE : CURLUSESSL_ALL;
  curl_easy_setopt(easy, CURLOPT_USE_SSL, use_ssl);
  curl_easy_setopt(easy, CURLOPT_MAIL_FROM, spec.from.c_str());
  curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, transfer.recipients.get());
  if (!spec.user.empty()) {
    curl_easy_setopt(easy, CURLOPT_USERNAME, spec.user.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, revealed.password.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, TakeReply);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, GiveMail);
  curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
  implementation_->Start(transfer);
}

std::vector<std::pair<size_t, Outcome>> Exchange::Perform() { return implementation_->Perform(); }
void Exchange::Wait(std::span<pollfd> descriptors, milliseconds at_most) {
  implementation_->Wait(descriptors, at_most);
}

}  // namespace aimaster::notify
