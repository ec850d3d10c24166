// Bodies in content codings: asked for, decoded for the program, stored as they came.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct CodingTests {
    /// 16 MiB of zeros, in gzip twice.
    private static let bomb = bytes(
        hex:
            "1f8b0800000000000203eddaad0dc2601486d1fe201a04e011740c0c82902050986ac21038441324861548a866059882b00341a0"
            + "09a51f43209a73d4abaf7c7247fb2c0a92f4718de3669487cff9997523000000a0e5cafb2e0d3120caebdb7c59000000006db7eef7"
            + "3abf28f05e0da7ce01000000ad574dc67968018357bd99251e25000000e00f2ec5e2b83d3523fe020e73c8b6c83f0000"
    )

    private static func coded(_ name: String) -> [UInt8] { Coded.jsonBy.first { $0.0 == name }?.1 ?? [] }

    /// What an origin answers that codes for those who take it.
    private static func reply(_ request: OriginRequest, _ coding: String = "gzip") -> OriginReply {
        let vary = [("Vary", "Accept-Encoding")]
        guard request.field("Accept-Encoding")?.contains(coding) == true else {
            return .answer(to: request, fields: vary, body: Coded.json)
        }
        return .answer(to: request, fields: vary + [("Content-Encoding", coding)], body: coded(coding))
    }

    private static let own = HTTPField.Name("Accept-Encoding")!
    private static let coding = HTTPField.Name("Content-Encoding")!

    // MARK: - Decoded

    @Test(arguments: ["gzip", "br"]) func aProgramGetsDecodedBytes(coding: String) async throws {
        try await withManager(onDisk: true) {
            Self.reply($0, coding)
        } _: { manager, origin in
            for outcome in [DownloadOutcome.downloaded, .stillValid] {
                let result = try await manager.download(origin.url())
                #expect(result.data == Data(Coded.json))
                #expect(result.outcome == outcome)
                #expect(result.head.headerFields[Self.coding] == nil)
                #expect(result.head.headerFields[.contentLength] == nil)
            }
            #expect(origin.server.log.map { $0.all("Accept-Encoding") } == [["gzip, br"]])
            try await manager.freeMemory()
            let fromDisk = try await manager.download(origin.url())
            #expect(fromDisk.data == Data(Coded.json))
            #expect(fromDisk.outcome == .stillValid)
        }
    }

    @Test(arguments: ["gzip", "br"]) func aFileOfABatchHasDecodedBytes(coding: String) async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager {
            Self.reply($0, coding)
        } _: { manager, origin async throws in
            // From the origin, then from the store.
            for name in ["one", "two"] {
                let file = URL(fileURLWithPath: folder.file(name))
                let batch = manager.batch([DownloadBatch.Item(origin.url(), file: file)])
                #expect(try await batch.run().isComplete)
                #expect(try Data(contentsOf: file) == Data(Coded.json))
            }
            #expect(origin.count("GET") == 1)
        }
    }

    @Test func aFileOfABatchIsNotWrittenWhereTheCodingIsBroken() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager {
            .answer(to: $0, fields: [("Content-Encoding", "gzip")], body: Array(Self.coded("gzip").dropLast(9)))
        } _: { manager, origin in
            let file = URL(fileURLWithPath: folder.file("one"))
            let batch = manager.batch([DownloadBatch.Item(origin.url(), file: file)])
            let report = try await batch.run()
            #expect(report.entries.map(\.state) == [.failed])
            #expect(report.entries.first?.reason?.contains("Content-Encoding") == true)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        }
    }

    @Test func aFileOfABatchIsWrittenAsItUnfolds() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager {
            .answer(to: $0, fields: [("Content-Encoding", "gzip, gzip")], body: Self.bomb)
        } _: { manager, origin async throws in
            let file = URL(fileURLWithPath: folder.file("one"))
            let batch = manager.batch([DownloadBatch.Item(origin.url(), file: file)])
            #expect(try await batch.run().isComplete)
            #expect(try Data(contentsOf: file) == Data(count: 16 << 20))
        }
    }

    @Test func anItemOfABatchWithAWishOfItsOwnGetsWhatCame() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager {
            Self.reply($0)
        } _: { manager, origin async throws in
            var request = origin.asking()
            request.headerFields[Self.own] = "gzip"
            let file = URL(fileURLWithPath: folder.file("one"))
            let batch = manager.batch([DownloadBatch.Item(request, file: file)])
            #expect(try await batch.run().isComplete)
            #expect(try Data(contentsOf: file) == Data(Self.coded("gzip")))
        }
    }

    @Test(arguments: [false, true]) func aStoredBodyThatIsBrokenDoesNotComeFirst(toFile: Bool) async throws {
        let (folder, isBroken) = (try TemporaryFolder("drydock-library"), Monitor(true))
        try await withManager {
            $0.lifetime = .zero
        } _: { request in
            let body = isBroken.read { $0 } ? Array(Self.coded("gzip").dropLast(9)) : Self.coded("gzip")
            return .answer(to: request, fields: [("Content-Encoding", "gzip")], body: body)
        } _: { manager, origin in
            // A batch without a file keeps what comes, and looks into nothing.
            let batch = manager.batch([DownloadBatch.Item(origin.url())])
            #expect(try await batch.run().isComplete)
            isBroken.update { $0 = false }
            let file = toFile ? URL(fileURLWithPath: folder.file("one")) : nil
            var results: [DownloadOutcome] = []
            for try await event in manager.events(for: origin.url(), to: file, options: .init(yieldsStaleFirst: true)) {
                if case .stale(let result) = event { results.append(result.outcome) }
                guard case .finished(let result) = event else { continue }
                results.append(result.outcome)
                let data = if let file { try Data(contentsOf: file) } else { result.data }
                #expect(data == Data(Coded.json))
            }
            #expect(results == [.downloaded])
        }
    }

    @Test func whatNobodyAskedForIsDecodedToo() async throws {
        try await withManager { request in
            let (name, body) = Coded.pngBy[Int(request.target.dropFirst()) ?? 0]
            return .answer(to: request, fields: [("Content-Encoding", name)], body: body)
        } _: { manager, origin in
            // x-gzip, and deflate with and without the zlib wrapper.
            for index in Coded.pngBy.indices {
                let result = try await manager.download(origin.url("/\(index)"))
                #expect(result.data == Data(Coded.png), "\(Coded.pngBy[index].0)")
            }
        }
    }

    @Test func severalCodingsAreTakenOff() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Content-Encoding", "gzip, gzip")], body: Self.bomb)
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.data == Data(count: 16 << 20))
        }
    }

    @Test func filesEventsAndStreamsAreDecoded() async throws {
        let folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: folder.file("a.json"))
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            try await manager.download(origin.url(), to: file)
            #expect(try readBytes(file.path) == Coded.json)
            let streamed = try await manager.stream(origin.url())
            #expect(streamed.body.expected == nil)
            #expect(try await streamed.body.collect(upTo: 1000) == Data(Coded.json))
            var last: DownloadProgress?
            for try await event in manager.events(for: origin.url()) {
                switch event {
                case .began(let head, let expected):
                    #expect(head.headerFields[Self.coding] == nil)
                    // Progress is that of the transfer.
                    #expect(expected == Int64(Self.coded("gzip").count))
                case .progress(let progress): last = progress
                case .finished(let result): #expect(result.data == Data(Coded.json))
                case .stale, .uploaded: Issue.record("\(event)")
                }
            }
            #expect(last?.fraction == 1)
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func answersToPostsAndOtherMethodsAreDecoded() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            for method in [HTTPRequest.Method.post, .put] {
                let result = try await manager.download(origin.request(method), body: Data("a".utf8))
                #expect(result.data == Data(Coded.json))
            }
        }
    }

    @Test func errorsAreDecoded() async throws {
        try await withManager {
            .answer(404, to: $0, fields: [("Content-Encoding", "gzip")], body: Self.coded("gzip"))
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            guard case .unacceptableStatus(let result) = error else { return unexpected(error as Any) }
            #expect(result.data == Data(Coded.json))
        }
    }

    @Test func aHeadSaysNothingOfCodedBytes() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            let result = try await manager.download(origin.request(.head))
            #expect(result.head.headerFields[Self.coding] == nil)
            #expect(result.head.headerFields[.contentLength] == nil)
            var request = origin.request(.head)
            request.headerFields[Self.own] = "identity"
            let plain = try await manager.download(request)
            #expect(plain.head.headerFields[.contentLength] == "\(Coded.json.count)")
        }
    }

    @Test func digestsOfCodedBytesAreLeftOut() async throws {
        try await withManager {
            .answer(
                to: $0,
                fields: [("Content-Encoding", "gzip"), ("Content-Digest", "sha-256=:YQ==:"), ("ETag", "\"1\"")],
                body: Self.coded("gzip")
            )
        } _: { manager, origin in
            let fields = try await manager.download(origin.url()).head.headerFields
            #expect(fields[HTTPField.Name("Content-Digest")!] == nil)
            #expect(fields[.eTag] == "\"1\"")
        }
    }

    // MARK: - As it came

    @Test func aRequestsOwnWishStays() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            var request = origin.request(.get)
            request.headerFields[Self.own] = "identity"
            let plain = try await manager.download(request)
            #expect(plain.data == Data(Coded.json))
            #expect(plain.outcome == .downloaded, "Vary keeps them apart")
            request.headerFields[Self.own] = "gzip"
            let coded = try await manager.download(request)
            #expect(coded.data == Data(Self.coded("gzip")))
            #expect(coded.head.headerFields[Self.coding] == "gzip")
            #expect(coded.head.headerFields[.contentLength] == "\(Self.coded("gzip").count)")
        }
    }

    @Test func aSwitchTurnsItOff() async throws {
        try await withManager {
            $0.decodesContent = false
        } _: {
            .answer(to: $0, fields: [("Content-Encoding", "gzip")], body: Self.coded("gzip"))
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.data == Data(Self.coded("gzip")))
            #expect(result.head.headerFields[Self.coding] == "gzip")
            #expect(origin.server.log.map { $0.field("Accept-Encoding") } == [nil])
        }
    }

    @Test func aRangeIsOfWhatIsNotCoded() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            var request = origin.request(.get)
            request.headerFields[.range] = "bytes=0-4"
            let result = try await manager.download(request)
            #expect(result.data == Data(Coded.json.prefix(5)))
            #expect(result.head.status == .partialContent)
            #expect(origin.server.log.map { $0.field("Accept-Encoding") } == [nil])
        }
    }

    @Test func anUnknownCodingIsHandedOver() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Content-Encoding", "zstd")], "coded")
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.text == "coded")
            #expect(result.head.headerFields[Self.coding] == "zstd")
            #expect(result.head.headerFields[.contentLength] == "5")
        }
    }

    // MARK: - Broken

    @Test(arguments: ["gzip", "br"]) func aBrokenCodingIsNoResult(coding: String) async throws {
        let whole = Self.coded(coding)
        let bodies = [Array(whole.dropLast(3)), Array("no coding at all".utf8), whole + Array("rest".utf8)]
        let answered = Counter()
        try await withManager { request in
            defer { answered.add() }
            let body = answered.value < bodies.count ? bodies[answered.value] : whole
            return .answer(to: request, fields: [("Content-Encoding", coding)], body: body)
        } _: { manager, origin in
            for _ in bodies {
                let error = await failure { try await manager.download(origin.url()) }
                #expect(error?.originKind == .protocolViolation)
                #expect(error?.description.contains(origin.url().absoluteString) == true)
            }
            // What was broken is not kept.
            let result = try await manager.download(origin.url())
            #expect(result.data == Data(Coded.json))
            #expect(origin.server.requests() == bodies.count + 1)
        }
    }

    @Test func aFileOfABrokenCodingDoesNotAppear() async throws {
        let folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: try folder.write("a.json", "before"))
        try await withManager {
            .answer(to: $0, fields: [("Content-Encoding", "gzip")], body: Self.coded("gzip").dropLast())
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url(), to: file) }
            #expect(error?.originKind == .protocolViolation)
            #expect(folder.text("a.json") == "before")
        }
    }

    @Test func nothingIsAWholeCodingOfNothing() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Content-Encoding", "gzip")], "")
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.data.isEmpty)
        }
    }

    @Test func whatUnfoldsTooFarIsTooLarge() async throws {
        try await withManager {
            $0.maximumBody = 1 << 20
        } _: {
            .answer(to: $0, fields: [("Content-Encoding", "gzip, gzip")], body: Self.bomb)
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error == .tooLarge(limit: 1 << 20))
            // A stream has no limit, and no piece that is larger than others.
            var count = 0
            for try await piece in try await manager.stream(origin.url()).body {
                #expect(piece.count <= 1 << 20)
                count += piece.count
            }
            #expect(count == 16 << 20)
        }
    }

    // MARK: - Checks

    @Test func codedResponsesAreCheckedByTheirTags() async throws {
        try await withManager {
            $0.lifetime = .zero
            $0.validation = .conditional
        } _: { request in
            let fields = [("ETag", "\"1\""), ("Vary", "Accept-Encoding"), ("Content-Encoding", "gzip")]
            if request.field("If-None-Match") == "\"1\"" { return OriginReply([OriginReply.head(304, fields: fields)]) }
            return .answer(to: request, fields: fields, body: Self.coded("gzip"))
        } _: { manager, origin in
            for outcome in [DownloadOutcome.downloaded, .confirmed, .confirmed] {
                let result = try await manager.download(origin.url())
                #expect(result.outcome == outcome)
                #expect(result.data == Data(Coded.json))
            }
            #expect(origin.server.log.allSatisfy { $0.field("Accept-Encoding") == "gzip, br" })
        }
    }

    @Test(arguments: [true, false])
    func checksByHeadAskAsDownloadsDo(isCodedForHead: Bool) async throws {
        let date = "Mon, 01 May 2023 10:00:00 GMT"
        try await withManager {
            $0.lifetime = .zero
        } _: { request in
            let fields = [("Last-Modified", date), ("Vary", "Accept-Encoding")]
            // Some servers do not code what they do not send, and tell the length that it has without.
            if request.method == "HEAD", !isCodedForHead {
                return .answer(to: request, fields: fields, body: Coded.json)
            }
            let gzip = Self.coded("gzip")
            return .answer(to: request, fields: fields + [("Content-Encoding", "gzip")], body: gzip)
        } _: { manager, origin in
            for outcome in [DownloadOutcome.downloaded, .confirmed, .confirmed] {
                let result = try await manager.download(origin.url())
                #expect(result.outcome == outcome)
                #expect(result.data == Data(Coded.json))
            }
            #expect(origin.server.log.map(\.method) == ["GET", "HEAD", "HEAD"])
            #expect(origin.server.log.allSatisfy { $0.field("Accept-Encoding") == "gzip, br" })
        }
    }
}
