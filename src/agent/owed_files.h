// OwedFiles: small files that whoever comes after us will look for, written as soon as they can be. A full disk is full
// for a while; what is true meanwhile stays true, so nothing waits for the file, and the file is not forgotten.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>
#include <utility>
#include <vector>

#include "agent/timer.h"

namespace aimaster::agent {

class OwedFiles {
 public:
  explicit OwedFiles(boost::asio::io_context& io) : timer_(io) {}

  // Now, or later, after those that are owed already; the newest text of a path counts. Makes its folder where needed.
  void Write(const std::string& path, std::string text);
  bool owes() const { return !owed_.empty(); }

 private:
  void TryAgain();

  std::vector<std::pair<std::string, std::string>> owed_;
  std::string told_;
  Timer timer_;
};

}  // namespace aimaster::agent
