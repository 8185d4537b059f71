// ConnectionTable: who is connected, and who has to give way.
//
// Think of a waiting room with few chairs: whoever shows a ticket goes on to the hall; when the room is full, the one
// who has sat there longest without a ticket leaves. Letting newcomers wait instead was rejected: somebody who opens
// connections and says nothing would keep every agent out for as long as he likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

namespace aimaster {

// Who holds a place.
class Guest {
 public:
  // Leave at once: closes the connection and destroys its place before it returns.
  virtual void Evict() = 0;

 protected:
  ~Guest() = default;
};

class ConnectionTable;

// A connection's place in the table, for as long as it lives. Outlives no guest: the guest owns it.
class Place {
 public:
  Place(std::shared_ptr<ConnectionTable> table, uint64_t number, Guest* guest);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void MarkTrusted();  // it has shown the token
  void HandTo(Guest* guest) { guest_ = guest; }
  Guest* guest() const { return guest_; }

 private:
  const std::shared_ptr<ConnectionTable> table_;
  const uint64_t number_;
  Guest* guest_;
};

// Lives on the server's thread.
class ConnectionTable : public std::enable_shared_from_this<ConnectionTable> {
 public:
  ConnectionTable(size_t connections_max, size_t strangers_max);

  // A place for a newcomer, evicting the oldest stranger when there are too many; null when every place is taken by
  // those who have shown the token.
  std::unique_ptr<Place> Admit(Guest* guest);
  bool EvictOldestStranger();  // false: there is none
  void EvictAll();

  size_t size() const { return places_.size(); }
  size_t strangers() const { return strangers_.size(); }

 private:
  friend class Place;

  void Evict(uint64_t number);

  const size_t connections_max_;
  const size_t strangers_max_;
  uint64_t next_ = 0;
  std::map<uint64_t, Place*> places_;  // by age
  std::set<uint64_t> strangers_;
};

}  // namespace aimaster
