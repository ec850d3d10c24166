// Placeholders and fallbacks, which are files that answer instead of a missing response; and the treatment of a fetch
// without clients.

import HTTPCaching
import Policies
import Upstream

extension KeyTable {
    static let placeholder = SectionDescriptor(
        name: "placeholder",
        keys: [
            KeyDescriptor(
                "file",
                .word("none", or: .path),
                "The file that is served; none switches an inherited placeholder off.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "after",
                .duration,
                default: "300ms",
                "How long a request waits for the head of the response before the file is served.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "200",
                "The status of the answer.",
                inherited: .endpoints
            ),
        ],
        replaces: true
    )

    static let fallback = SectionDescriptor(
        name: "fallback",
        keys: [
            KeyDescriptor(
                "file",
                .word("none", or: .path),
                "The file that is served; none switches an inherited fallback off.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "200",
                "The status of the answer.",
                inherited: .endpoints
            ),
        ],
        replaces: true
    )

    /// The keys of placeholders, fallbacks and abandoned fetches in `cache` of services, endpoints and forward mode.
    static let phases: [KeyDescriptor] = [
        KeyDescriptor(
            "on_client_abort",
            .text(.clientAbort),
            default: "finish",
            "What happens to a fetch when all clients that waited for it have left: finish, abort, or finish-if N% (if so much of the body has arrived).",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "placeholder",
            .section(placeholder),
            "A file that is served while nothing is stored and the origin is slow; it is sent with no-store.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "fallback",
            .section(fallback),
            "A file that is served when the fetch fails and no stored response may be used; it is sent with no-store.",
            inherited: .endpoints
        ),
    ]
}

/// A file that answers instead of a missing response.
package struct StandInConfiguration: Sendable, Hashable {
    /// The absolute path of a regular file that existed when the configuration was read.
    package var file: String
    /// The status of the answer. Default: 200.
    package var status: Int
}

/// A file that answers while nothing is stored and the origin is slow.
package struct PlaceholderConfiguration: Sendable, Hashable {
    package var answer: StandInConfiguration
    /// The nanoseconds that a request waits for the origin before. Default: 300 ms.
    package var after: UInt64
}

extension StandInConfiguration {
    package init(file: String) { self.init(file: file, SectionReader(nothingOf: KeyTable.fallback)) }

    init(file: String, _ reader: SectionReader) {
        self.file = file
        status = reader.int(always: "status")
    }
}

extension PlaceholderConfiguration {
    package init(answer: StandInConfiguration) {
        self.init(answer: answer, SectionReader(nothingOf: KeyTable.placeholder))
    }

    init(answer: StandInConfiguration, _ reader: SectionReader) {
        self.answer = answer
        after = reader.nanoseconds(always: "after")
    }
}

extension Resolver {
    mutating func placeholder(_ cache: SectionReader) -> PlaceholderConfiguration? {
        guard let answer = standIn(cache, "placeholder") else { return nil }
        let result = PlaceholderConfiguration(answer: answer, cache.section("placeholder"))
        if cache.text("mode") == CacheMode.none.rawValue {
            fail(
                position(cache, "placeholder"),
                "'cache.placeholder' is for responses that are stored, but 'cache.mode' is none; remove it, or write placeholder: { file: none }"
            )
        }
        return result
    }

    /// Reads and checks the file under `placeholder` or `fallback`; nil if there is none.
    mutating func standIn(_ cache: SectionReader, _ key: String) -> StandInConfiguration? {
        let reader = cache.section(key)
        guard cache.entry(key) != nil, let path = reader.text("file") else { return nil }
        let result = StandInConfiguration(file: path, reader)
        if let problem = FileChecks.readable(path, atMost: FileChecks.largestDemoFile) {
            fail(position(reader, "file"), file: "'cache.\(key).file' \(problem)")
        }
        if [204, 205, 304].contains(result.status) {
            fail(
                position(reader, "status"),
                "a \(result.status) has no body, so 'cache.\(key).file' would never be sent; write another status"
            )
        }
        demoFiles.append(path)
        return result
    }
}

extension AbandonmentPolicy {
    /// Parses `finish`, `abort` or `finish-if N%`; nil if the words are none of these.
    init?(words text: String) {
        let words = text.split(separator: " ")
        switch words.count {
        case 1 where words[0] == "finish": self = .finish
        case 1 where words[0] == "abort": self = .abort
        case 2 where words[0] == "finish-if":
            guard let share = try? Units.share(String(words[1])) else { return nil }
            self = .finishBeyond(share)
        default: return nil
        }
    }
}
