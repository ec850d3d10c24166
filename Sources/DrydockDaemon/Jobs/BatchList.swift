// Lists of what to download: a URL a line, or a JSON object a line.

import EventLoop
import Files
import Glibc
import ProxyServer

/// Reads lists. Empty lines, and lines that begin with `#`, count for nothing.
package enum BatchList {
    /// The error in a list, with its line.
    package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        package var description: String
    }

    /// - Throws: ``Malformed`` with file and line; an item is never left out in silence.
    package static func parse(_ text: String, name: String) throws(Malformed) -> [AdminJobItem] {
        var items: [AdminJobItem] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.drop { $0 == " " || $0 == "\t" }
            guard let first = line.first, first != "#" else { continue }
            let place = "\(name):\(index + 1)"
            if first == "{" {
                do {
                    items.append(try AdminJSON.decode(AdminJobItem.self, from: Array(line.utf8)))
                } catch {
                    throw Malformed(description: "\(place): \(AdminJSON.reason(error))")
                }
            } else {
                let url = String(line.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
                guard !url.contains(where: { $0 == " " || $0 == "\t" }) else {
                    throw Malformed(
                        description:
                            "\(place): '\(url)' is not a URL; write one URL a line, or a JSON object with 'url'"
                    )
                }
                items.append(AdminJobItem(url: url))
            }
        }
        return items
    }

    /// Reads a file. It blocks: not on a loop.
    /// - Throws: ``Malformed``, also where the file cannot be read or is no UTF-8.
    package static func read(_ path: String) throws(Malformed) -> [AdminJobItem] {
        try parse(try text(of: path), name: path)
    }

    /// The text of a file. It blocks: not on a loop.
    /// - Throws: ``Malformed`` where it cannot be read, with what the system says, or where it is no UTF-8.
    package static func text(of path: String) throws(Malformed) -> String {
        try text(path) { () throws(SystemError) in try WholeFile.read(path) }
    }

    /// The text of standard input; as ``text(of:)``.
    /// - Parameter name: what errors call it.
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

/// What `drydock size` and `drydock prefetch` ask for, before it is a document.
package struct BatchOrder: Sendable {
    /// As they were given, before those of the lists.
    package var urls: [String] = []
    /// The text of each list, and what messages call it.
    package var lists: [(name: String, text: String)] = []
    /// Further fields of every request; an item's own win.
    package var headers: [String: String] = [:]
    package var force = false
    /// Nil leaves it to the daemon, like the next.
    package var concurrency: Int?
    package var onError: AdminJobRequest.OnError?
    package var save = false

    package init() {}

    /// The body of `POST /v1/size` or `POST /v1/prefetch`.
    /// - Throws: ``BatchList/Malformed`` with the place of what is wrong.
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
