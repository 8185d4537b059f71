// ProgramMemory: what the start alone needed of our program and its libraries (set-up code, relocations, the databases
// that a PatternMatcher copies when it loads) stays resident in every agent as long as nobody else wants the memory.
#pragma once

namespace aimaster::agent {

// Lets go of all pages that are only read, code too: they lie in files, and what is still used comes back from there
// within microseconds. Worth it once, when the start is over.
void GiveBackReadOnlyPages();

}  // namespace aimaster::agent
