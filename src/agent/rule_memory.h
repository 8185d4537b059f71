// RuleMemory: the databases of the built-in rules lie in the program's file, and a PatternMatcher copies them when it
// loads. The copy is what works; the pages that it was made from, megabytes of them, need not stay in every agent.
#pragma once

namespace aimaster::agent {

// After a matcher has loaded. Who needs them again reads them from the file again.
void GiveBackBuiltInDatabases();

}  // namespace aimaster::agent
