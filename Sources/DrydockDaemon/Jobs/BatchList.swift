// The lists of downloads that commands read: one URL a line, or one JSON object a line.

import EventLoop
import Files
import Glibc
import ProxyServer

/// Reads lists of downloads. Empty lines, and lines that begin with `#`, are ignored.
package enum BatchList {
    /// The error in a list, with its line.
    package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        package var description: String
    }

    /// Parses a list.
    /// - Throws: ``Malformed`` with file and line; no item is ever left out silently.
    package static func parse(_ text: String, name: String) throws(Malformed) -> [AdminJobItem] {
        var items: [AdminJobItem] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.drop { $0 == " " || $0 == "\t" }
            guard let first = line.first, first != "#" else { continue }
            let position = "\(name):\(index + 1)"
            if first == "{" {
                do {
                    items.append(try AdminJSON.decode(AdminJobItem.self, from: Array(line.utf8)))
                } catch {
                    throw Malformed(description: "\(position): \(AdminJSON.reason(error))")
                }
            } else {
                let url = String(line.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
                guard !url.contains(where: { $0 == " " || $0 == "\t" }) else {
                    throw Malformed(
                        description:
                            "\(position): '\(url)' is not a URL; write one URL a line, or a JSON object with 'url'"
                    )
                }
                items.append(AdminJobItem(url: url))
            }
        }
        return items
    }

    /// Reads and parses a file. Blocks: not on a loop.
    /// - Throws: ``Malformed``, also if the file cannot be read or is not UTF-8.
    package static func read(_ path: String) throws(Malformed) -> [AdminJobItem] {
        try parse(try text(of: path), name: path)
    }

    /// Reads the text of a file. Blocks: not on a loop.
    /// - Throws: ``Malformed`` with the system's reason if it cannot be read, or if it is not UTF-8.
    package static func text(of path: String) throws(Malformed) -> String {
        try text(path) { () throws(SystemError) in try WholeFile.read(path) }
    }

    /// Reads the text of standard input. Blocks: not on a loop.
    /// - Parameter name: the name of the input in errors.
    /// - Throws: ``Malformed`` as ``text(of:)`` does.
    package static func textOfInput(_ name: String) throws(Malformed) -> String {
        try text(name) { () throws(SystemError) in try WholeFile.rest(of: STDIN_FILENO, name) }
    }

    private static func text(_ name: String, _ read: () throws(SystemError) -> [UInt8]) throws(Malformed) -> String {
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try read() } catch {
            throw Malformed(
                description: "\(name) cannot be read: \(error.reason); check that it exists, and its permissions"
            )
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Malformed(description: "\(name) is not UTF-8; save it as UTF-8")
        }
        return text
    }
}

/// The arguments of `drydock size` and `drydock prefetch`, from which the request is made.
package struct BatchOrder: Sendable {
    /// The URLs of the command line, as they were given; they come before those of the lists.
    package var urls: [String] = []
    /// The text of each list, and its name in error messages.
    package var lists: [(name: String, text: String)] = []
    /// Fields that are added to every request; an item's own field of the same name wins.
    package var headers: [String: String] = [:]
    package var force = false
    /// The number of downloads at a time; nil leaves it to the daemon.
    package var concurrency: Int?
    package var onError: AdminJobRequest.OnError?
    package var save = false

    package init() {}

    /// The body of `POST /v1/size` or `POST /v1/prefetch`.
    /// - Throws: ``BatchList/Malformed`` with the position of the mistake.
    package func body() throws(BatchList.Malformed) -> [UInt8] {
        var items = urls.map { AdminJobItem(url: $0) }
        for list in lists { items += try BatchList.parse(list.text, name: list.name) }
        for index in items.indices {
            if force { items[index].force = true }
            if !headers.isEmpty { items[index].headers = headers.merging(items[index].headers ?? [:]) { $1 } }
        }
        var request = AdminJobRequest(items: items)
        request.concurrency = concurrency
        request.onError = onError
        request.save = save ? true : nil
        do {
            return try AdminJSON.encode(request)
        } catch {
            throw BatchList.Malformed(description: "the list cannot be sent: \(error)")
        }
    }
}
