// ReadPickle: the plain data in a Python pickle, and nothing that would run.
//
// A pickle is a program for a small machine with a stack: most of its words put data there, and some call any function
// of any Python module. The machine here knows the words for data (protocols 2 to 5); at the first of the others it
// stops and says so. So a dump that somebody left in a shared folder is a file, and not a way into this process.
// Calling Python, even one that restricts what may be imported, was rejected for that.
//
// A pickle that is cut short, or damaged at its end, gives what was read before: of a dict the pairs, of a list the
// items, with `is_whole` false on every container that may have been unfinished.
#pragma once

#include <string_view>

#include "c4d/data_tree.h"
#include "core/error.h"

namespace aimaster::c4d {

bool LooksLikePickle(std::string_view bytes);

// The tree's texts stand in `bytes`, which have to outlive it. An error: what it holds is no plain data, or beyond a
// limit; the message begins with what is wrong, to follow the file's name: "would run code …".
Result<DataTree> ReadPickle(std::string_view bytes);

}  // namespace aimaster::c4d
