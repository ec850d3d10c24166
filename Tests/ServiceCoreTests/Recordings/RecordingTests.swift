// What a recording is found by, what is written of an answer, and what of it is sent.

import CacheStore
import EventLoop
import Foundation
import HTTPWire
import Policies
import TestSupport
import Testing

@testable import ServiceCore

@Suite struct RecordingTests {
    private static func key(
        _ method: HTTPWire.Method = .get,
        _ path: String = "/users/7",
        _ fields: [(String, String)] = [],
        _ content: String = "",
        _ rules: RecordingRules = RecordingRules()
    ) -> RecordingKey {
        RecordingKey(method, path: path, Fields(fields), content: Array(content.utf8), rules)
    }

    @Test("method, target, named fields and content tell recordings apart, and nothing else does")
    func keys() {
        let plain = Self.key()
        #expect(plain.request == "GET /users/7")
        #expect(Self.key(.head) == plain)
        #expect(Self.key(.get, "/users/7", [("Accept-Language", "de")]) == plain)
        for other in [Self.key(.delete), Self.key(.get, "/users/8"), Self.key(.get, "/users/7?a"), Self.key(.post)] {
            #expect(other != plain && other.name != plain.name)
        }
        #expect(Self.key(.post, "/a", [], "x") != Self.key(.post, "/a", [], "y"))
        let bodiless = RecordingRules(matchesBody: false)
        #expect(Self.key(.post, "/a", [], "x", bodiless) == Self.key(.post, "/a", [], "y", bodiless))
        let byLanguage = RecordingRules(fields: ["Accept-Language"])
        let german = Self.key(.get, "/", [("accept-language", "de"), ("ACCEPT-LANGUAGE", "en")], "", byLanguage)
        #expect(german.fields == [["accept-language", "de, en"]])
        #expect(german != Self.key(.get, "/", [], "", byLanguage))
        let ignoring = RecordingRules(ignoredQuery: ["utm_*"])
        #expect(Self.key(.get, "/a?utm_x=1&b=2", [], "", ignoring).request == "GET /a?b=2")
    }

    @Test("a 401 and the answer with credentials are two recordings, and Vary of an answer is obeyed")
    func credentialsAndVaryTellRecordingsApart() async throws {
        let folder = try TemporaryFolder("recordings")
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let recordings = RecordingFolder(path: folder.path, pool: pool) { Issue.record("\($0)") }
        func save(_ status: Int, _ request: [(String, String)], vary: String? = nil) async {
            let fields = Fields(vary.map { [("Vary", $0)] } ?? [])
            let recording = Recording(
                key: Self.key(.get, "/me", request),
                vary: RecordingVary.pairs(fields, Fields(request)),
                recordedAt: 1_000_000_000,
                status: status,
                reason: "",
                fields: fields,
                content: []
            )
            #expect(await recordings.save(recording))
        }
        func find(_ request: [(String, String)]) async -> Int? {
            await recordings.find(Self.key(.get, "/me", request), Fields(request))?.recording.status
        }
        let (ann, bob) = (("Authorization", "Bearer ann"), ("Authorization", "Bearer bob"))
        let (german, english) = (("Accept-Language", "de"), ("Accept-Language", "en"))
        await save(200, [ann])
        #expect(await find([]) == nil)
        await save(401, [])
        #expect(await find([]) == 401)
        #expect(await find([ann]) == 200)
        #expect(await find([bob]) == 200)
        // Three languages, one of them none at all; what is recorded again takes the place of its own.
        await save(201, [ann, german], vary: "Accept-Language, Accept-Encoding, Cookie")
        await save(202, [ann, english], vary: "Accept-Language, Accept-Encoding, Cookie")
        await save(203, [ann], vary: "Accept-Language, Accept-Encoding, Cookie")
        await save(204, [ann, german], vary: "Accept-Language, Accept-Encoding, Cookie")
        #expect(await find([bob, german]) == 204)
        #expect(await find([bob, english, ("Accept-Encoding", "br")]) == 202)
        #expect(await find([bob]) == 203)
        #expect(await find([bob, ("Accept-Language", "fr")]) == nil)
        #expect(await find([bob, english, ("Cookie", "a=b")]) == nil)
        #expect(await find([german]) == 401)
        let told = await recordings.nearest(to: Self.key(.get, "/me", [ann]), Fields([ann, ("Accept-Language", "fr")]))
        #expect(
            told?.contains("'GET /me' (Vary: recorded accept-language: de, asked accept-language: fr)") == true,
            "\(told ?? "")"
        )
        #expect(told?.contains("'GET /me' (field without authorization: ***)") == true, "\(told ?? "")")
        let page = await recordings.nearest(to: Self.key(.get, "/me?page=2"), Fields())
        #expect(page?.contains("'GET /me' (query without page=2)") == true, "\(page ?? "")")
        #expect(await recordings.nearest(to: Self.key(.post, "/somewhere/else"), Fields()) == nil)
    }

    @Test("a recording that does not say what it was made with answers with credentials, too")
    func recordingsOfBefore() async throws {
        let folder = try TemporaryFolder("recordings")
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let recordings = RecordingFolder(path: folder.path, pool: pool) { Issue.record("\($0)") }
        let recording = Recording(
            key: Self.key(),
            recordedAt: 1_000_000_000,
            status: 200,
            reason: "",
            fields: Fields([("Vary", "Accept-Language")]),
            content: []
        )
        #expect(await recordings.save(recording))
        let request = Fields([("Authorization", "Bearer ann"), ("Accept-Language", "de")])
        let key = RecordingKey(.get, path: "/users/7", request, content: [], RecordingRules())
        #expect(await recordings.find(key, request) != nil)
        var rules = RecordingRules()
        rules.matchesCredentials = false
        #expect(RecordingKey(.get, path: "/users/7", request, content: [], rules) == Self.key())
    }

    @Test("no key and no name of a file has a secret of the query")
    func secretsOfTheQuery() {
        let rules = RecordingRules(redactedQuery: ["pin"])
        let key = Self.key(.get, "/a?access_token=hush&pin=1234&b=2", [], "", rules)
        #expect(key.request == "GET /a?access_token=***&pin=***&b=2")
        #expect(key == Self.key(.get, "/a?access_token=other&pin=9&b=2", [], "", rules))
        #expect(!key.name.contains("hush") && !key.name.contains("1234"))
    }

    @Test("a name is one of a file, whatever the target")
    func names() {
        for path in ["/../../etc/passwd", "/a b\u{0}\n", "/" + String(repeating: "x", count: 4000), "/ü/%2F"] {
            let name = Self.key(.get, path).name
            #expect(!name.contains("/") && !name.contains("\u{0}") && name.utf8.count < 120, "\(name)")
        }
    }

    @Test("cookies keep their names, secrets lose their values, and named members are gone through lists")
    func redaction() throws {
        let rules = RecordingRules(redactedFields: ["X-Trace"], redactedMembers: [["users", "token"]])
        let fields = Fields([
            ("Content-Type", "application/json"), ("Set-Cookie", "id=7f3a; Path=/; HttpOnly"), ("X-Auth-Token", "hush"),
            ("X-Trace", "me"), ("ETag", "\"1\""),
        ])
        let kept = Redaction.apply(to: fields, rules, SecretQuery())
        #expect(
            kept.lines.map(\.value) == ["application/json", "id=***; Path=/; HttpOnly", "***", "***", "\"1\""]
        )
        let content = Array(#"{"users":[{"token":"a","name":"b"},{"token":1}],"token":"stays"}"#.utf8)
        let redacted = try Redaction.apply(to: content, fields, rules)
        #expect(
            String(decoding: redacted, as: UTF8.self)
                == #"{"users":[{"token":"***","name":"b"},{"token":"***"}],"token":"stays"}"#
        )
        #expect(throws: RedactionRefusal.noJSON) { try Redaction.apply(to: Array("{".utf8), fields, rules) }
        #expect(try Redaction.apply(to: Array("{".utf8), Fields(), rules) == Array("{".utf8))
        // A document is one without saying so, too.
        for types in [[], ["text/plain"], ["text/plain", "application/json"]] {
            #expect(try Redaction.apply(to: content, Fields(types.map { ("Content-Type", $0) }), rules) == redacted)
        }
        // What has no such member keeps its spaces.
        #expect(try Redaction.apply(to: Array("{ }".utf8), fields, rules) == Array("{ }".utf8))
    }

    @Test("no field has a secret in a URL, and no key a secret that tells recordings apart")
    func secretsOfURLsAndOfFields() {
        let rules = RecordingRules(fields: ["Authorization", "Accept"], redactedQuery: ["pin"])
        let fields = Fields([
            ("Location", "/cb?access_token=hush&pin=1234&b=2#id_token=hush"), ("Link", "</n?api_key=hush>; rel=next"),
            ("Content-Location", "https://me:hush@h/"),
        ])
        #expect(
            Redaction.apply(to: fields, rules, SecretQuery()).lines.map(\.value) == [
                "/cb?access_token=***&pin=***&b=2#id_token=***", "</n?api_key=***>; rel=next", "https://me:***@h/",
            ]
        )
        func key(_ authorization: String) -> RecordingKey {
            Self.key(.get, "/", [("Authorization", authorization), ("Accept", "a/b")], "", rules)
        }
        #expect(key("Bearer hush").fields == [["accept", "a/b"], ["authorization", "sha256:77f2e514001fdc0e"]])
        #expect(key("Bearer hush") == key("Bearer hush") && key("Bearer hush") != key("Bearer other"))
        #expect(key("Bearer hush").hasSecrets)
        // What a person has written into a document is found, too.
        #expect(
            RecordingKey(request: "GET /", fields: [["accept", "a/b"], ["authorization", "Bearer hush"]], body: nil)
                == key("Bearer hush")
        )
    }

    @Test(
        "names of secret items are found however they are written, and so are what the service adds and cookies without a name"
    )
    func secretsElsewhere() {
        let rules = RecordingRules(redactedQuery: ["pin", "si*"])
        var secrets = SecretQuery()
        secrets.insert("own", ["CONF"])
        let values = [
            ("Location", "/x?own=CONF&a=1", "/x?a=1"), ("X-A", "/x?p%69n=S&b=2", "/x?p%69n=***&b=2"),
            ("X-B", "/x?a;pin=S", "/x?a;pin=***"), ("X-C", "/x?next=%2Fcb%3Fpin%3DS", "/x?next=***"),
            ("Link", "</n?p=2>; rel=next, </p?pin=S>; rel=prev", "</n?p=2>; rel=next, </p?pin=***>; rel=prev"),
            ("X-D", "/x?sid=S", "/x?sid=***"), ("Set-Cookie", "VALUE; Path=/", "***; Path=/"),
            ("Set-Cookie2", "id=S", "id=***"), ("X-CSRFToken", "S", "***"), ("X-SessionId", "S", "***"),
        ]
        let kept = Redaction.apply(to: Fields(values.map { ($0.0, $0.1) }), rules, secrets)
        #expect(kept.lines.map(\.value) == values.map(\.2))
        #expect(Self.key(.get, "/a?p%69n=1;sid=2", [], "", rules).request == "GET /a?p%69n=***;sid=***")
    }

    @Test("an answer is recorded without its content coding, and without digests of other bytes")
    func codings() throws {
        // "hello" in gzip.
        let coded: [UInt8] = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0,
        ]
        let fields = Fields([
            ("Content-Encoding", "gzip"), ("Content-Length", "25"), ("Repr-Digest", "sha-256=:x:"),
            ("Content-MD5", "x"),
            ("Content-Type", "text/plain"),
        ])
        let plain = try Redaction.apply(to: coded, of: fields, RecordingRules(), SecretQuery())
        #expect(plain.content == Array("hello".utf8))
        #expect(plain.fields.lines.map(\.name) == ["Content-Type"])
        // No coding keeps a secret from being found.
        let named = Fields([("Content-Encoding", "identity"), ("Content-Type", "application/json")])
        let token = Array(#"{"access_token":"x"}"#.utf8)
        let hidden = try Redaction.apply(to: token, of: named, RecordingRules(), SecretQuery())
        #expect(hidden.content == Array(#"{"access_token":"***"}"#.utf8))
        #expect(hidden.fields.lines.map(\.name) == ["Content-Type"])
        // What cannot be decoded, or is in an unknown coding, stays as it came; what is too long is not recorded.
        let unknown = Fields([("Content-Encoding", "zstd"), ("Repr-Digest", "x")])
        for (content, fields, rules) in [
            (Array(coded.dropLast(4)), fields, RecordingRules()), (Array("x".utf8), fields, RecordingRules()),
            (coded, unknown, RecordingRules()),
        ] {
            let kept = try Redaction.apply(to: content, of: fields, rules, SecretQuery())
            #expect(kept.content == content)
            #expect(kept.fields.contains(.contentEncoding) && kept.fields.combined("repr-digest") != nil)
        }
        #expect(throws: RedactionRefusal.tooLong(4)) {
            try Redaction.apply(to: coded, of: fields, RecordingRules(maximumSize: 4), SecretQuery())
        }
        // A secret that may be in it is no reason to write it.
        let secret = RecordingRules(redactedMembers: [["a"]])
        let json = Fields([("Content-Encoding", "zstd"), ("Content-Type", "application/json")])
        #expect(throws: RedactionRefusal.noJSON) { try Redaction.apply(to: coded, of: json, secret, SecretQuery()) }
    }

    @Test("a recording is sent with the date of now, and as fresh as it was")
    func head() {
        let time: Int64 = 1_700_000_000
        let fields = Fields([
            ("Date", HTTPDate.format(time)), ("Expires", HTTPDate.format(time + 60)), ("Age", "5"), ("ETag", "\"1\""),
            ("Last-Modified", HTTPDate.format(time - 9)),
        ])
        let recording = Recording(
            key: Self.key(),
            recordedAt: time,
            status: 200,
            reason: "Fine",
            fields: fields,
            content: [1, 2, 3]
        )
        let head = recording.head(now: time + 1000, length: 3)
        #expect(head.status == 200 && head.reason == "Fine")
        #expect(head.fields.first(.date) == HTTPDate.format(time + 1000))
        #expect(head.fields.first(.expires) == HTTPDate.format(time + 1060))
        #expect(head.fields.first(.lastModified) == HTTPDate.format(time - 9))
        #expect(head.fields.first(.contentLength) == "3")
        #expect(!head.fields.contains(.age))
    }

    // MARK: - The folder

    private static func folder(
        _ path: String,
        _ troubles: Monitor<[String]> = Monitor([])
    ) throws -> (RecordingFolder, IOPool) {
        let pool = try IOPool(threads: 1)
        return (RecordingFolder(path: path, pool: pool) { text in troubles.update { $0.append(text) } }, pool)
    }

    private static func recording(_ key: RecordingKey, _ text: String, status: Int = 200) -> Recording {
        Recording(
            key: key,
            recordedAt: 1_700_000_000,
            status: status,
            reason: "",
            fields: Fields([("Content-Type", "application/json"), ("ETag", "\"1\"")]),
            content: Array(text.utf8)
        )
    }

    @Test("what was written is found again, by its owner alone, and the later one counts")
    func files() async throws {
        let temporary = try TemporaryFolder()
        let (folder, pool) = try Self.folder(temporary.path + "/deep/api")
        defer { pool.stop() }
        let keys = [Self.key(), Self.key(.post, "/orders", [], "{}"), Self.key(.get, "/empty")]
        #expect(try await folder.whole(keys[0]) == nil)
        #expect(await folder.save(Self.recording(keys[0], "old")))
        for key in keys { #expect(await folder.save(Self.recording(key, key == keys[2] ? "" : "new"))) }
        for key in keys {
            let found = try #require(try await folder.whole(key))
            #expect(found.content == Array((key == keys[2] ? "" : "new").utf8))
            #expect(found.recordedAt == 1_700_000_000 && found.fields.first(.etag) == "\"1\"")
        }
        #expect(await folder.all().map(\.key).count == 3)
        #expect(try await folder.whole(Self.key(.post, "/orders", [], "[]")) == nil)
        let manager = FileManager.default
        for name in try manager.contentsOfDirectory(atPath: folder.path) {
            let attributes = try manager.attributesOfItem(atPath: "\(folder.path)/\(name)")
            #expect((attributes[.posixPermissions] as? Int) == 0o600, "\(name)")
        }
        let attributes = try manager.attributesOfItem(atPath: folder.path)
        #expect((attributes[.posixPermissions] as? Int) == 0o700)
    }

    @Test("a recording that a person has changed answers as it is; one that cannot be sent is left out, and told")
    func edited() async throws {
        let temporary = try TemporaryFolder()
        let troubles = Monitor<[String]>([])
        let (folder, pool) = try Self.folder(temporary.path + "/api", troubles)
        defer { pool.stop() }
        let key = Self.key()
        #expect(await folder.save(Self.recording(key, "old")))
        let name = try FileManager.default.contentsOfDirectory(atPath: folder.path).first {
            !$0.hasSuffix(".head.json")
        }
        let content = "\(folder.path)/\(try #require(name))"
        let head = "\(folder.path)/\(key.name).head.json"
        try Data("edited".utf8).write(to: URL(fileURLWithPath: content))
        #expect(try await folder.whole(key)?.content == Array("edited".utf8))
        let text = try String(contentsOfFile: head, encoding: .utf8)
        for (old, new) in [
            ("\"status\" : 200", "\"status\" : 304"), ("\"ETag\"", "\"E Tag\""), ("2023-11-14", "yesterday"),
            (".json\"", "/../../x\""), ("{", "["), ("GET /", "GET /other"), ("200", "\"200\""),
            ("\"request\"", "\"asked\""),
        ] {
            try text.replacingOccurrences(of: old, with: new).write(toFile: head, atomically: true, encoding: .utf8)
            let before = troubles.read { $0.count }
            #expect(try await folder.whole(key) == nil, "\(new)")
            #expect(troubles.read { $0.count } == before + 1, "\(new)")
        }
        #expect(troubles.read { $0 }.allSatisfy { $0.contains(head) || $0.contains("correct it") })
        #expect(troubles.read { $0 }.contains { $0.contains("the value of 'status' is of another kind") })
        #expect(troubles.read { $0 }.contains { $0.contains("'request' is missing") })
        // A head and a content that are no files, or are links to others.
        let manager = FileManager.default
        for (path, isHead) in [(head, true), (content, false)] {
            for make in [
                { try manager.createDirectory(atPath: path, withIntermediateDirectories: true) },
                { try manager.createSymbolicLink(atPath: path, withDestinationPath: "/etc/hostname") },
            ] as [() throws -> Void] {
                if !isHead { try text.write(toFile: head, atomically: true, encoding: .utf8) }
                try manager.removeItem(atPath: path)
                try make()
                let before = troubles.read { $0.count }
                #expect(try await folder.whole(key) == nil)
                #expect(troubles.read { $0.count } == before + 1)
            }
        }
    }

    @Test("the folder of a path is one for all who use it, however often it is asked for")
    func oneFolder() async throws {
        let temporary = try TemporaryFolder()
        let pool = try IOPool(threads: 4)
        defer { pool.stop() }
        let troubles = Monitor<[String]>([])
        let folders = RecordingFolders()
        func folder() -> RecordingFolder {
            folders.folder(temporary.path) {
                RecordingFolder(path: temporary.path, pool: pool) { text in troubles.update { $0.append(text) } }
            }
        }
        let first = folder()
        #expect(folder() === first)
        // As the routes of two plans write.
        let saved = await withTaskGroup(of: Int.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    let own = folder()
                    var saved = 0
                    for number in 0..<40 {
                        let key = Self.key(.get, "/\(number % 5)")
                        if await own.save(Self.recording(key, "\(writer) \(number)")) { saved += 1 }
                    }
                    return saved
                }
            }
            return await group.reduce(0, +)
        }
        #expect(saved == 320)
        #expect(troubles.read { $0 } == [])
        #expect(await first.all().count == 5)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).count == 10)
    }

    @Test("what a folder lies in is made by whom it belongs to, before the folder is made, as often as it is gone")
    func prepared() async throws {
        let temporary = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let (folders, store) = (RecordingFolders(), temporary.file("store"))
        let found = Monitor<[Bool]>([])
        folders.prepare {
            found.update { $0.append(FileManager.default.fileExists(atPath: store)) }
            try? FileManager.default.createDirectory(atPath: store, withIntermediateDirectories: true)
        }
        let folder = RecordingFolder(path: "\(store)/recordings/api", pool: pool, prepare: { folders.prepare() }) { _ in
        }
        for round in 1...2 {
            for _ in 0..<2 { #expect(await folder.save(Self.recording(Self.key(), "new"))) }
            #expect(found.read { $0 } == [Bool](repeating: false, count: round))
            try FileManager.default.removeItem(atPath: store)
        }
    }

    @Test("what a killed process has left goes with the first recording, and what is somebody's own stays")
    func orphans() async throws {
        let temporary = try TemporaryFolder()
        let (before, pool) = try Self.folder(temporary.path)
        defer { pool.stop() }
        let (kept, broken) = (Self.key(.get, "/kept"), Self.key(.get, "/broken"))
        for key in [kept, broken] { #expect(await before.save(Self.recording(key, "new"))) }
        try temporary.write("\(broken.name).head.json", "{")
        let name = Self.key(.get, "/gone").name
        let orphans = [
            "\(name).0123abcd.json", "\(kept.name).0123abcd.bin", "\(name).0123abcd.json.new",
            "\(kept.name).head.json.new", ".recording-0123abcd",
        ]
        let others = [
            "\(kept.name).json", "notes.txt", "a.new", "\(kept.name).0123abcd", "\(broken.name).0123abcd.bin",
            ".recording-notes",
        ]
        for file in orphans + others { try temporary.write(file, "x") }
        let (folder, second) = try Self.folder(temporary.path)
        defer { second.stop() }
        _ = await folder.find(kept, Fields())
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: temporary.path).count == 4 + orphans.count
                + others.count
        )
        #expect(await folder.save(Self.recording(kept, "newer")))
        let files = Set(try FileManager.default.contentsOfDirectory(atPath: temporary.path))
        #expect(files.isDisjoint(with: orphans) && files.isSuperset(of: others), "\(files)")
        #expect(files.count == 4 + others.count)
        #expect(try await folder.whole(kept)?.content == Array("newer".utf8))
    }

    /// - Parameter length: that is added to each content; a long one stays in its file.
    @Test("a content that is not what its name says answers, and is told once", arguments: [0, 100_000])
    func anotherContent(_ length: Int) async throws {
        let more = String(repeating: " ", count: length)
        let temporary = try TemporaryFolder()
        let troubles = Monitor<[String]>([])
        let (folder, pool) = try Self.folder(temporary.path, troubles)
        defer { pool.stop() }
        let key = Self.key()
        #expect(await folder.save(Self.recording(key, "old" + more)))
        #expect(await folder.find(key, Fields()) != nil && troubles.read { $0.isEmpty })
        let files = try FileManager.default.contentsOfDirectory(atPath: temporary.path)
        let file = try #require(files.first { !$0.hasSuffix(".head.json") })
        for (text, count) in [(length == 0 ? "o1d" : "other", 1), ("edited", 2), ("edited", 2), ("old", 2)] {
            try temporary.write(file, text + more)
            for _ in 0..<2 { #expect(try await folder.whole(key)?.content == Array((text + more).utf8)) }
            #expect(troubles.read { $0.count } == count, "\(text)")
        }
        #expect(troubles.read { $0 }.allSatisfy { $0.contains("\(key.name).head.json") && $0.contains("'\(file)'") })
        // Under a name of its own it is what somebody wants it to be.
        let head = temporary.text("\(key.name).head.json")
        try temporary.write("\(key.name).head.json", head.replacingOccurrences(of: file, with: "mine.json"))
        try temporary.write("mine.json", "mine")
        #expect(try await folder.whole(key)?.content == Array("mine".utf8))
        #expect(troubles.read { $0.count } == 2)
    }

    /// The head and the content of two answers are never taken for one, and a killed daemon leaves no such pair: the
    /// content is in a file of its own, which the head names.
    @Test func whoeverReadsWhileARecordingIsReplacedGetsOneAnswer() async throws {
        let temporary = try TemporaryFolder()
        let pool = try IOPool(threads: 3)
        defer { pool.stop() }
        let troubles = Monitor<[String]>([])
        let folder = RecordingFolder(path: temporary.path, pool: pool) { text in troubles.update { $0.append(text) } }
        let key = Self.key()
        func recording(_ number: Int) -> Recording {
            let text = String(repeating: "\(number),", count: 2000)
            return Recording(
                key: key,
                recordedAt: 1_700_000_000,
                status: 200,
                reason: "",
                fields: Fields([("X-Number", "\(number)")]),
                content: Array(text.utf8)
            )
        }
        #expect(await folder.save(recording(0)))
        let torn = await withTaskGroup(of: Int.self) { group in
            group.addTask {
                for number in 1..<60 { _ = await folder.save(recording(number)) }
                return 0
            }
            for _ in 0..<2 {
                group.addTask {
                    var torn = 0
                    for _ in 0..<600 {
                        guard let found = try? await folder.whole(key) else {
                            torn += 1
                            continue
                        }
                        let number = found.fields.combined("x-number").flatMap { Int($0) } ?? -1
                        if found.content != recording(number).content { torn += 1 }
                    }
                    return torn
                }
            }
            return await group.reduce(0, +)
        }
        #expect(torn == 0)
        #expect(troubles.read { $0 }.isEmpty)
        // The content of before is gone.
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).count == 2)
    }
}

extension RecordingFolder {
    /// The whole recording of a key.
    func whole(_ key: RecordingKey, _ request: Fields = Fields()) async throws -> Recording? {
        guard let found = await find(key, request) else { return nil }
        var content: [UInt8] = []
        if let chunk = found.content.wholeChunk {
            content = Array(chunk.bytes)
        } else if let file = found.content.file {
            content = try file.read(offset: 0, count: Int(found.length)).array(0..<Int(found.length))
        }
        let head = found.recording
        return Recording(
            key: head.key,
            vary: head.vary,
            recordedAt: head.recordedAt,
            status: head.status,
            reason: head.reason,
            fields: head.fields,
            content: content
        )
    }
}
