// How a command fails, and what it knows of its process.

import Glibc

/// A failure with its exit code.
struct Failure: Error {
    let message: String
    var code: Int32 = 1

    static func noDaemon(_ message: String) -> Failure { Failure(message: message, code: 3) }
}

func printError(_ text: String) {
    _ = (text + "\n").utf8CString.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count - 1) }
}

/// The variables of this process.
func processEnvironment() -> [String: String] {
    var result: [String: String] = [:]
    // The environment is not changed while the process runs: nothing here calls setenv.
    var entry = environ
    while let text = entry.pointee {
        let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
        entry += 1
    }
    return result
}
