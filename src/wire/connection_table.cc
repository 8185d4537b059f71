#include "wire/connection_table.h"

#include <utility>

#include "core/check.h"

namespace aimaster {

Place::Place(std::shared_ptr<ConnectionTable> table, uint64_t number, Guest* guest)
    : table_(std::move(table)), number_(number), guest_(guest) {
  table_->places_.emplace(number_, this);
  table_->strangers_.insert(number_);
}

Place::~Place() {
  table_->places_.erase(number_);
  table_->strangers_.erase(number_);
}

void Place::MarkTrusted() { table_->strangers_.erase(number_); }

ConnectionTable::ConnectionTable(size_t connections_max, size_t strangers_max)
    : connections_max_(connections_max), strangers_max_(strangers_max) {}

std::unique_ptr<Place> ConnectionTable::Admit(Guest* guest) {
  if (strangers_.size() >= strangers_max_ || places_.size() >= connections_max_) EvictOldestStranger();
  if (places_.size() >= connections_max_) return nullptr;
  return std::make_unique<Place>(shared_from_this(), next_++, guest);
}

bool ConnectionTable::EvictOldestStranger() {
  if (strangers_.empty()) return false;
  Evict(*strangers_.begin());
  return true;
}

void ConnectionTable::EvictAll() {
  while (!places_.empty()) Evict(places_.begin()->first);
}

void ConnectionTable::Evict(uint64_t number) {
  places_.at(number)->guest()->Evict();
  CHECK(!places_.contains(number));
}

}  // namespace aimaster
