// The typed error of a failed system call: which call, on what, and the kernel's reason.

import Glibc

/// A system call that failed.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The call and what it was made on, such as `bind 127.0.0.1:8080`.
    package let operation: String
    /// The value of `errno` right after the call.
    package let code: Int32

    package init(_ operation: String, code: Int32 = errno) {
        self.operation = operation
        self.code = code
    }

    package var reason: String { String(cString: strerror(code)) }
    package var description: String { "\(operation): \(reason)" }
}
