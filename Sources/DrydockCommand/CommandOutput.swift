// What commands share: failures with their exit codes, lines on standard error, numbers, and durations as arguments.

import ArgumentParser
import Configuration
import DrydockDaemon
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

/// Lets Ctrl-C, SIGTERM and a reader that closes the pipe end a command that goes on and on, without a failure.
func endQuietlyBySignals() {
    for number in [SIGINT, SIGTERM, SIGPIPE] { signal(number) { _ in _exit(0) } }
}

/// Writes bytes to standard output as they are; where nobody reads them any more, the program ends without a failure.
func printBytes(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { _exit(0) }
        rest = rest.dropFirst(count)
    }
}

/// The environment variables of this process.
func processEnvironment() -> [String: String] {
    var result: [String: String] = [:]
    // The environment does not change while the process runs: nothing here calls setenv.
    var entry = environ
    while let text = entry.pointee {
        let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
        entry += 1
    }
    return result
}

// MARK: - Numbers

/// Numbers in the form that people read.
enum Format {
    static func size(_ bytes: Int) -> String { BatchProgress.size(Int64(bytes)) }

    /// A number with its noun, such as `1 rule` or `2 rules`.
    /// - Parameter many: the noun's plural; nil if it ends with an s.
    static func count(_ number: Int, _ noun: String, _ many: String? = nil) -> String {
        BatchProgress.count(number, noun, many)
    }

    /// Milliseconds with one decimal, rounded down.
    static func milliseconds(_ nanoseconds: UInt64) -> String {
        let tenths = nanoseconds / 100_000
        return "\(tenths / 10).\(tenths % 10)ms"
    }

    /// Rows as lines whose columns begin below one another, two spaces apart; the last column of a row ends with it.
    static func table(_ rows: [[String]]) -> [String] {
        var widths: [Int] = []
        for row in rows {
            for (column, text) in row.dropLast().enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], text.count)
            }
        }
        return rows.map { row in
            let cells = row.enumerated().map { column, text in
                let isLast = column == row.count - 1
                return isLast ? text : text + String(repeating: " ", count: widths[column] - text.count)
            }
            return cells.joined(separator: "  ")
        }
    }

    static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds)s"
        case ..<7200: "\(seconds / 60)m"
        case ..<172_800: "\(seconds / 3600)h"
        default: "\(seconds / 86400)d"
        }
    }
}

// MARK: - Durations

extension Lifetimes {
    /// The seconds of a duration that an option or an argument has; nil without one.
    /// - Parameter option: its name, such as `--for`.
    /// - Throws: `ValidationError`, which names the option.
    static func seconds(_ text: String?, of option: String) throws -> Int64? {
        guard let text else { return nil }
        do throws(Malformed) { return try seconds(text) } catch { throw ValidationError("\(option): \(error)") }
    }
}
