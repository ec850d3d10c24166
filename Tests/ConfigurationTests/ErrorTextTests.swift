// What is said of each kind of mistake in a configuration, as Texts/errors.txt has it.

import EventLoop
import Foundation
import TLS
import TestSupport
import Testing

@testable import Configuration

/// A mistake of Texts/errors.txt: a file, and perhaps others, and the command that reads it.
struct Mistake {
    let name: String
    /// Everything between the name and what is said.
    let text: String

    /// The mistakes of the file, behind its first lines.
    static func all(_ text: String) -> (head: String, mistakes: [Mistake]) {
        var parts = text.components(separatedBy: "\n=== ")
        let head = parts.removeFirst()
        return (
            head,
            parts.map { part in
                let lines = part.components(separatedBy: "\n")
                let body = lines.dropFirst().prefix { $0 != "--- says" }
                return Mistake(name: lines[0], text: body.map { $0 + "\n" }.joined())
            }
        )
    }

    /// What the command says, a line each, with `FOLDER` for the folder.
    func said(in folder: MistakeFolder) throws -> String {
        var parts = text.components(separatedBy: "+++ ")
        var main = parts.removeFirst()
        var further: [(name: String, text: String)] = []
        for part in parts {
            let lines = part.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
            further.append((String(lines[0]), String(lines[1])))
        }
        for file in further where file.name != "drydock.yaml" { try folder.write(file.name, file.text) }
        var words: [Substring] = []
        if main.hasPrefix("$ drydock ") {
            words = main.prefix { $0 != "\n" }.split(separator: " ").dropFirst(2).map { $0 }
            main = String(main.drop { $0 != "\n" }.dropFirst())
        }
        let path = try folder.write("drydock.yaml", main)
        let said: String
        do throws(ConfigurationErrors) {
            var variables: [String: String] = [:]
            for word in words where word.contains("=") {
                let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
                variables[parts[0]] = parts[1].replacing("/FOLDER", with: folder.path)
            }
            switch words.first {
            case "serve":
                let options = URLOptions(words.dropFirst(2).map { String($0).replacing("/FOLDER", with: folder.path) })
                said = try URLConfiguration.make(String(words[1]), options, environment: variables).summary
            case "status":
                said =
                    try Configuration.adminAddress(path: path, environment: [:])?.description ?? "the user's own daemon"
            case "reload":
                let running = try Configuration.load(text: main, file: path, environment: [:])
                let new = try Configuration.load(text: further.last?.text ?? "", file: path, environment: [:])
                said = RestartDifference.all(in: new, since: running).map(\.description).joined(separator: "\n")
            default:
                let configuration = try Configuration.load(path: path, environment: variables)
                let warnings = configuration.warnings.map(\.description)
                said = warnings.isEmpty ? configuration.summary : warnings.joined(separator: "\n")
            }
        } catch {
            said = error.description
        }
        return said.replacing(folder.path + "/drydock.yaml:", with: "drydock.yaml:")
            .replacing(folder.path, with: "/FOLDER") + "\n"
    }
}

/// The folder that the mistakes are made in.
struct MistakeFolder {
    private let folder: Folder
    var path: String { folder.path }

    init() throws {
        folder = try Folder()
        for (name, text) in [
            ("demo/u.json", "{}"), ("file.txt", "text"), ("bell.yaml", "name: a\u{7}b\n"),
            ("pictures/harbour.jpg", "x"), ("taken/drydock/serve/harbour.jpg", "x"),
            ("newer/version", "drydock 9 shared\n"), ("private/version", "drydock 1 private\n"),
        ] {
            try folder.write(name, text)
        }
        let latin = Array("services:\n  - name: gr".utf8) + [0xFC, 0x6E]
        try Data(latin).write(to: URL(filePath: path + "/latin.yaml"))
        // Each line has ten of the line before: a million values from twenty lines.
        var aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...5 {
            let items = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            aliases += "a\(level): &a\(level) [\(items)]\n"
        }
        try folder.write("aliases.yaml", "services: []\n" + aliases)
        try #require(mkfifo(path + "/pipe", 0o600) == 0)
        try writeCertificates()
        // A hole: it takes no room.
        try folder.write("large.json", "")
        try #require(truncate(path + "/large.json", 64 << 20 + 1) == 0)
    }

    /// `server` and its key, which `open.key` is, too; `soon` and `late` end in four days, and have ended.
    private func writeCertificates() throws {
        // A minute ago, so that a day that has begun is not a whole one.
        let now = Int64(Date().timeIntervalSince1970) - 60
        let authority = try LocalAuthority(name: "Of a test", now: now)
        for (name, days) in [("server", Int64(100)), ("soon", 5), ("late", -1)] {
            let key = try PrivateKey()
            let identity = try authority.leaf(for: .name("\(name).example.com"), key: key, now: now, days: days)
            try folder.write("\(name).pem", identity.certificate.pem)
            chmod(try folder.write("\(name).key", key.pem ?? ""), 0o600)
            if name == "server" { chmod(try folder.write("open.key", key.pem ?? ""), 0o644) }
        }
    }

    @discardableResult
    func write(_ name: String, _ text: String) throws -> String { try folder.write(name, text) }
}

@Suite struct ErrorTextTests {
    static let file = GoldenFile("errors.txt")
    static let filter = "ErrorTextTests"

    @Test func theTextsAreAsTheFileHasThem() throws {
        let (head, mistakes) = Mistake.all(Self.file.text)
        let folder = try MistakeFolder()
        var text = head
        for mistake in mistakes {
            let said = try mistake.said(in: folder)
            #expect(!said.hasPrefix("ok ("), "\(mistake.name): this is no mistake any more; take it out, or mend it")
            text += "\n=== \(mistake.name)\n\(mistake.text)--- says\n\(said)"
        }
        let difference = try Self.file.difference(from: text, filter: Self.filter)
        #expect(difference == nil, "\(difference ?? "")")
        #expect(mistakes.count >= 90)
        #expect(Set(mistakes.map(\.name)).count == mistakes.count, "two mistakes of one name")
    }

    /// Messages that no file of the table can bring about, with the reason.
    static let unreachable = [
        // libyaml has no such error for a text in memory.
        "the file cannot be read as YAML: ",
        // The tests may run as root, who reads everything.
        " cannot be read; change its permissions", "the file  cannot be read (); change its permissions",
        // The decoder takes these kinds apart before it says what one takes.
        ", or a list of them", "any value",
        // Standard input is no file of the table.
        "<standard input>", "standard input cannot be read: ",
        // Options of 'serve URL' (DaemonTests).
        "--listen  takes a port twice; give each address once", "--listen  speaks TLS; give --tls for its certificates",
        "--tls has no address: clients speak plain at each of --listen; add --listen localhost:8443",
        "other machines can connect to , and each gets a 403; name who may connect, such as --clients 192.168.0.0/16 or --clients any",
        // Values of 'drydock demo set' (DemoRouteTests).
        "'' is neither on nor off", "'' is no status of an answer; write a number from 200 to 599",
        "write the name of a fault profile, such as flaky-mobile, or off", "there are , and off",
        // A warning (OpenAPIKeyTests).
        "not all that the document under 'openapi' says of requests is checked; left out: ",
        // A note (HostsTests).
        "requests that come through the proxy for  are answered by the services with that 'match.host', and forward mode has the others; 'drydock explain --proxy URL' says which",
        // Words of libyaml, by which an error is known.
        "but found another document", "tab character",
    ]

    /// A message of the sources that stands nowhere in the table is a mistake that nobody has read.
    @Test func everyMessageOfTheSourcesIsInTheTable() throws {
        let sources = ShippedFilesTests.folder + "/../Sources/Configuration"
        let said = Self.file.text.split(separator: "\n").map(String.init)
        var count = 0
        let paths = try FileManager.default.subpathsOfDirectory(atPath: sources).sorted()
        for path in paths {
            let name = path.split(separator: "/").last.map(String.init) ?? path
            guard Self.hasMessages(name) else { continue }
            let text = try String(contentsOfFile: "\(sources)/\(path)", encoding: .utf8)
            let withoutKeys = text.replacing(#/(?m)^(package enum|extension) KeyTable \{\n(?s:.*?)\n\}/#, with: "")
            for message in Literals.of(withoutKeys) where message.isSentence {
                if Self.unreachable.contains(message.pieces.joined()) { continue }
                count += 1
                #expect(said.contains { message.matches($0) }, "\(name): \(message.pieces)")
            }
        }
        #expect(count > 150, "\(count) messages")
    }

    /// What is printed of a configuration, and what is said of a folder of the user's, are no messages of a file; neither
    /// are the descriptions of keys, which the extensions of `KeyTable` hold.
    private static func hasMessages(_ name: String) -> Bool {
        name.hasSuffix(".swift") && !["DefaultNames.swift", "Schema.swift", "Show.swift"].contains(name)
    }

    @Test func aDifferenceNamesItsLine() {
        #expect(GoldenFile.difference("a\nb\n", "a\nb\n") == nil)
        #expect(GoldenFile.difference("a\nb\n", "a\nc\n") == "line 2: the file has 'b', and now it is 'c'")
        #expect(GoldenFile.difference("a\n", "a\nb") == "line 2: the file has '', and now it is 'b'")
        #expect(GoldenFile.difference("a\nb", "a") == "line 2: the file has 'b', and now it is the end")
        #expect(GoldenFile.difference("", "") == nil)
    }
}

/// A string literal of a source file: what is fixed in it, in order.
struct Literal {
    var pieces: [String] = [""]

    /// Two words in a row: a message, and no key or file name.
    var isSentence: Bool { pieces.contains { $0.firstMatch(of: /[a-z]{2,} [a-z']{2,}/) != nil } }

    func matches(_ line: String) -> Bool {
        var rest = line[...]
        for piece in pieces where !piece.isEmpty {
            guard let range = rest.firstRange(of: piece) else { return false }
            rest = rest[range.upperBound...]
        }
        return true
    }
}

/// The string literals of Swift source text, those inside interpolations too; comments are left out.
enum Literals {
    static func of(_ source: String) -> [Literal] {
        var scanner = Scanner(rest: Array(source)[...])
        scanner.code(until: nil)
        return scanner.found
    }

    private struct Scanner {
        var rest: ArraySlice<Character>
        var found: [Literal] = []

        /// Reads code to its end, or to the parenthesis that closes an interpolation.
        mutating func code(until end: Character?) {
            var depth = 0
            while let character = rest.popFirst() {
                switch character {
                case "/" where rest.first == "/": rest = rest.drop { $0 != "\n" }
                case "\"": literal()
                case "(": depth += 1
                case ")" where depth == 0 && end == ")": return
                case ")": depth -= 1
                default: break
                }
            }
        }

        /// Reads a literal of one line behind its first quote.
        private mutating func literal() {
            var literal = Literal()
            while let character = rest.popFirst(), character != "\"" {
                guard character == "\\", let escaped = rest.popFirst() else {
                    literal.pieces[literal.pieces.count - 1].append(character)
                    continue
                }
                if escaped == "(" {
                    code(until: ")")
                    literal.pieces.append("")
                } else {
                    literal.pieces[literal.pieces.count - 1].append(escaped)
                }
            }
            found.append(literal)
        }
    }
}

extension URLOptions {
    /// The options of a command line `serve URL`, each with its value behind it; what is no option is passed over.
    fileprivate init(_ words: [String]) {
        self.init()
        for (option, value) in zip(words, words.dropFirst()) where option.hasPrefix("--") {
            switch option {
            case "--listen": listen.append(value)
            case "--clients": clients.append(value)
            case "--ttl": ttl = value
            case "--cors": cors.append(value)
            case "--hosts": hosts.append(value)
            case "--ca": ca = value
            case "--name": name = value
            default: Issue.record("\(option) is no option of errors.txt")
            }
        }
    }
}
