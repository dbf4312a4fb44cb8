// Part files: what AtomicFile writes for F before it has F's name ("F.<process>-<n>.part"), and
// what a killed process leaves of it.
//
// Idea. Who writes a part file holds a lock on it (flock), which ends with the process, however
// that ends. So whoever gets the lock knows that nobody writes the file any more, and removes it.
// The number in the name would not say so: seen from another container it is another process, or
// none. A lock is right for all that share the folder, on one machine or by NFS. Where files cannot
// be locked, nothing is removed.
//
// Tested by atomic_file_test.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace outrider {

// Distinct within the process; a killed one of the same number may have left it.
std::string new_part_name(const std::string& path);

// Says that the part file, open and just made, is being written: until its last descriptor, copies
// made by dup among them, is closed. False: somebody took it for one that was left, and removes it.
// `path`: its name.
bool hold_part(int file, const std::string& path);

// Removes the part files in the folder that nobody writes, of those files whose names (without the
// folder) `of` accepts. What cannot be removed stays, without a word: it harms nobody.
void remove_left_parts(const std::string& folder, const std::function<bool(std::string_view)>& of);

}  // namespace outrider
