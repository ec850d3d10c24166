// What a manager lists of what it has stored, and by which selections.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct ListingTests {
    private static let modified = "Mon, 01 May 2023 10:00:00 GMT"

    /// The paths of what is listed.
    private func paths(_ manager: DownloadManager, _ selection: StoredSelection = .all) async throws -> [String] {
        var paths: [String] = []
        for try await response in manager.store.responses(selection) { paths.append(response.url.path()) }
        return paths
    }

    @Test("What is stored is told with its status, fields, size, times, tags and places", arguments: [false, true])
    func oneResponse(onDisk: Bool) async throws {
        let began = Date().timeIntervalSince1970.rounded(.down)
        try await withManager(onDisk: onDisk) { request in
            .answer(
                to: request,
                fields: [("Last-Modified", Self.modified), ("Cache-Tag", "a, b"), ("X-Own", "1")],
                "hello"
            )
        } _: { manager, origin in
            _ = try await manager.download(origin.url("/a?q=1"))
            var found: [StoredResponse] = []
            for try await response in manager.store.responses() { found.append(response) }
            let response = try #require(found.first)
            #expect(found.count == 1)
            #expect(response.url == origin.url("/a?q=1"))
            #expect(response.head.status.code == 200)
            #expect(response.head.headerFields[.init("X-Own")!] == "1")
            #expect(response.size == 5)
            #expect(response.isInMemory && response.isOnDisk == onDisk)
            #expect(response.storedAt.timeIntervalSince1970 >= began)
            #expect(response.confirmedAt.timeIntervalSince1970 >= began)
            #expect(response.lastModified == Date(timeIntervalSince1970: 1_682_935_200))
            #expect(response.validity > .seconds(7000) && response.validity <= .seconds(7200))
            #expect(response.age >= .zero)
            #expect(response.tags == ["a", "b"])
            #expect(!response.isPinned)
            #expect(response.secondaryKey.isEmpty && response.varyingFields.isEmpty)
            #expect(origin.server.requests() == 1)
        }
    }

    @Test("What varies is listed once for each selection of fields, and a POST with the digest of its content")
    func variants() async throws {
        try await withManager { request in
            .answer(to: request, fields: request.method == "GET" ? [("Vary", "Accept-Language")] : [], "hello")
        } _: { manager, origin in
            for language in ["de", "fr"] {
                var request = origin.asking("/varies")
                request.headerFields[.acceptLanguage] = language
                _ = try await manager.download(request)
            }
            _ = try await manager.download(
                origin.asking("/post", .post),
                body: Data("question".utf8)
            )
            var found: [StoredResponse] = []
            for try await response in manager.store.responses() { found.append(response) }
            #expect(found.map { $0.url.path() } == ["/post", "/varies", "/varies"])
            #expect(found[0].secondaryKey.first?.hasPrefix("POST sha-256=") == true)
            #expect(found[1...].map { $0.varyingFields[.acceptLanguage] } == ["de", "fr"])
        }
    }

    @Test("Prefix, glob, URL, tag and age select", arguments: [false, true])
    func selections(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) { request in
            .answer(to: request, fields: request.target == "/b/2" ? [("Surrogate-Key", "two three")] : [], "hello")
        } _: { manager, origin in
            for path in ["/a/1", "/a/2", "/b/2", "/b/2x"] { _ = try await manager.download(origin.url(path)) }
            #expect(try await paths(manager) == ["/a/1", "/a/2", "/b/2", "/b/2x"])
            #expect(try await paths(manager, .prefix(origin.server.url + "/a/")) == ["/a/1", "/a/2"])
            #expect(try await paths(manager, .prefix(origin.server.url.uppercased() + "/a/")) == ["/a/1", "/a/2"])
            #expect(try await paths(manager, .glob("*/2*")) == ["/a/2", "/b/2", "/b/2x"])
            #expect(try await paths(manager, .glob(origin.server.url + "/b/2")) == ["/b/2"])
            #expect(try await paths(manager, .glob("/b/")) == [])
            #expect(try await paths(manager, .url(origin.url("/b/2"))) == ["/b/2"])
            #expect(try await paths(manager, .tag("three")) == ["/b/2"])
            #expect(try await paths(manager, .tag("Three")) == [])
            #expect(try await paths(manager, .olderThan(.seconds(3600))) == [])
        }
    }

    @Test("A listing of more than a page has everything once, in the order of URLs", arguments: [false, true])
    func pages(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            .answer(to: $0, "x")
        } _: { manager, origin async throws in
            let all = (100..<350).map { "/item/\($0)" }
            let batch = manager.batch(all.shuffled().map { DownloadBatch.Item(origin.url($0)) })
            #expect(try await batch.run().isComplete)
            #expect(try await paths(manager) == all)
            #expect(try await paths(manager, .glob("*/item/1*5")) == (0..<10).map { "/item/1\($0)5" })
        }
    }

    @Test("A selection of what is no URL, and a closed manager, say so") func failures() async throws {
        let manager = makeManager()
        let error = await #expect(throws: DownloadError.self) {
            _ = try await paths(manager, .url(URL(filePath: "/tmp/a")))
        }
        guard case .invalidRequest(let text) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(text.contains("http://"))
        await manager.close()
        await #expect(throws: DownloadError.closed) { _ = try await paths(manager) }
    }

    // MARK: - The state of one request

    @Test("The state of a request is that of its method, fields and content", arguments: [false, true])
    func states(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) { request in
            .answer(to: request, fields: request.method == "GET" ? [("Vary", "Accept")] : [], "hello")
        } _: { manager, origin in
            var request = origin.asking()
            request.headerFields[.accept] = "a/a"
            let post = origin.asking("/a", .post)
            #expect(try await manager.state(of: request) == .absent)
            _ = try await manager.download(request)
            _ = try await manager.download(post, body: Data("one".utf8))
            func isValid(_ state: StoredState) -> Bool { if case .valid = state { true } else { false } }
            #expect(isValid(try await manager.state(of: request)))
            #expect(isValid(try await manager.state(of: post, body: Data("one".utf8))))
            #expect(try await manager.state(of: post, body: Data("two".utf8)) == .absent)
            request.headerFields[.accept] = "b/b"
            #expect(try await manager.state(of: request) == .absent)
            request.headerFields[.accept] = "a/a"
            guard case .stale = try await manager.state(of: request, options: .init(lifetime: .zero)) else {
                Issue.record("it is valid for no time at all")
                return
            }
            #expect(origin.server.requests() == 2)
        }
    }
}
