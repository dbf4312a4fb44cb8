// The three standard streams, which a caller may have closed (`outrider rpc <&-`).
//
// Tested by standard_streams_test.cc.
#pragma once

namespace outrider::tools {

// First thing in the program. Where 0, 1 or 2 is closed, the next file that is opened would get its
// number: a pipe of our own would be standard input, the access log standard output. So it becomes
// /dev/null, opened for the other direction: what reads or writes it fails as it does where it is
// closed, and no result is lost in silence. Those that are open stay as they are.
void open_closed_streams();

}  // namespace outrider::tools
