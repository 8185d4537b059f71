// LocalProvider: this machine, pretending to be one node or several. Each node is an agent process with a directory of
// its own.
//
// An agent is not bound to the life of the master that started it: a later master finds it by its file and watches it
// through a pidfd. Making agents die with their master was rejected: then a crash of the master would disturb training.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "nodes/node_provider.h"

namespace aimaster {

class LocalProvider : public NodeProvider {
 public:
  struct Options {
    std::filesystem::path agent_program;
    std::filesystem::path job_directory;
    uint32_t nodes = 1;  // how many it pretends to be; more can't be had
  };

  LocalProvider(boost::asio::io_context& io, Options options, Callbacks callbacks);
  ~LocalProvider() override;

  void Acquire(const std::vector<NodeIndex>& nodes) override;
  void Release(NodeIndex node) override;
  void Dismiss() override;
  void Isolate(NodeIndex node, const std::string& reason) override;
  void Recover(NodeIndex node, const std::string& reason) override;

  // "node-2", or the machine's own name when it pretends nothing.
  static std::string NodeName(NodeIndex node, uint32_t nodes);

 private:
  struct Agent;

  void Start(NodeIndex node);
  void Watch(NodeIndex node, int pid);
  void OnExit(NodeIndex node);
  void StartAgain(NodeIndex node);
  std::filesystem::path DirectoryOf(NodeIndex node) const;

  boost::asio::io_context& io_;
  const Options options_;
  const Callbacks callbacks_;
  std::map<NodeIndex, std::unique_ptr<Agent>> agents_;
};

}  // namespace aimaster
