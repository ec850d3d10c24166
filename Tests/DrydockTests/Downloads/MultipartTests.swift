// Forms of several parts, as an origin reads them.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct MultipartTests {
    /// A part as it arrived: its head, and its content.
    private struct Part: Equatable {
        var disposition: String
        var type: String?
        var content: String

        init(_ disposition: String, type: String? = nil, _ content: String) {
            (self.disposition, self.type, self.content) = (disposition, type, content)
        }
    }

    /// Reads a form as RFC 7578 and RFC 2046 say.
    private func parts(_ request: OriginRequest) throws -> [Part] {
        let type = try #require(request.field("Content-Type"))
        let name = "multipart/form-data; boundary="
        try #require(type.hasPrefix(name))
        let boundary = String(type.dropFirst(name.count))
        let text = "\r\n" + String(decoding: request.body, as: UTF8.self)
        var pieces = text.components(separatedBy: "\r\n--\(boundary)")
        #expect(pieces.removeFirst() == "")
        #expect(pieces.removeLast() == "--\r\n")
        return try pieces.map { piece in
            let halves = piece.dropFirst().components(separatedBy: "\r\n\r\n")
            let lines = try #require(halves.first).components(separatedBy: "\r\n")
            let type = lines.first { $0.hasPrefix("Content-Type: ") }.map { String($0.dropFirst(14)) }
            return Part(lines[0], type: type, halves.dropFirst().joined(separator: "\r\n\r\n"))
        }
    }

    @Test func partsFromMemoryFileAndStream() async throws {
        let folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: try folder.write("note.txt", "from a file\r\n\r\nwith lines"))
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var form = MultipartForm()
            form.append("plain é", name: "title")
            form.append(.data(Data("{}".utf8), contentType: "application/json"), name: "json")
            form.append(.file(file), name: "note")
            form.append(.file(file, contentType: "text/x-note"), name: "note", filename: "other.txt")
            form.append(.stream(length: 3) { ContentPieces(["a", "bc"]) }, name: "stream", filename: "s")
            let body = RequestBody.multipart(form)
            #expect(try await manager.download(origin.request(.post), body: body).text == "thanks")
            let asked = try #require(origin.server.log.first)
            let note = "from a file\r\n\r\nwith lines"
            #expect(
                try parts(asked) == [
                    Part("Content-Disposition: form-data; name=\"title\"", "plain é"),
                    Part("Content-Disposition: form-data; name=\"json\"", type: "application/json", "{}"),
                    Part(
                        "Content-Disposition: form-data; name=\"note\"; filename=\"note.txt\"",
                        type: "application/octet-stream",
                        note
                    ),
                    Part(
                        "Content-Disposition: form-data; name=\"note\"; filename=\"other.txt\"",
                        type: "text/x-note",
                        note
                    ),
                    Part(
                        "Content-Disposition: form-data; name=\"stream\"; filename=\"s\"",
                        type: "application/octet-stream",
                        "abc"
                    ),
                ]
            )
            #expect(asked.field("Content-Length") == "\(asked.bodyLength)")
            #expect(body.length == Int64(asked.bodyLength))
            #expect(try await body.collect(upTo: 10_000) == Data(asked.body))
        }
    }

    @Test func namesAreEncodedAsBrowsersDo() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var form = MultipartForm()
            form.append(.data(Data("x".utf8)), name: "a\"b\r\nc", filename: "d\"\ne")
            _ = try await manager.download(origin.request(.post), body: .multipart(form))
            let asked = try #require(origin.server.log.first)
            let part = try #require(parts(asked).first)
            #expect(part.disposition == "Content-Disposition: form-data; name=\"a%22b%0D%0Ac\"; filename=\"d%22%0Ae\"")
        }
    }

    @Test func aFormOfUnknownLengthIsSentInChunks() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var form = MultipartForm()
            form.append(.stream { ContentPieces(["a", "b"]) }, name: "stream")
            form.append("end", name: "last")
            _ = try await manager.download(origin.request(.post), body: .multipart(form))
            let asked = try #require(origin.server.log.first)
            #expect(asked.field("Transfer-Encoding") == "chunked")
            #expect(try parts(asked).map(\.content) == ["ab", "end"])
        }
    }

    @Test func nobodyGuessesABoundary() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let form = MultipartForm()
            for _ in 0..<2 { _ = try await manager.download(origin.request(.post), body: .multipart(form)) }
            let types = origin.server.log.compactMap { $0.field("Content-Type") }
            #expect(Set(types).count == 2)
            for asked in origin.server.log { #expect(try parts(asked).isEmpty) }
        }
    }

    @Test func aFormIsRedirectedAsItIs() async throws {
        try await withManager { request in
            request.target == "/a"
                ? .answer(308, to: request, fields: [("Location", "/b")], "") : .answer(to: request, "thanks")
        } _: { manager, origin in
            var form = MultipartForm()
            form.append("text", name: "title")
            _ = try await manager.download(origin.request(.post), body: .multipart(form))
            #expect(origin.server.log.map(\.target) == ["/a", "/b"])
            #expect(Set(origin.server.log.map(\.body)).count == 1)
            #expect(try parts(origin.server.log[1]).map(\.content) == ["text"])
        }
    }

    @Test func whatNobodyCouldRead() async throws {
        let manager = makeManager()
        var request = HTTPRequest(method: .post, scheme: "http", authority: "origin.test", path: "/a")
        var broken = MultipartForm()
        broken.append(.data(Data(), contentType: "a\r\nb"), name: "broken")
        let unnamed = await failure { try await manager.download(request, body: .multipart(broken)) }
        #expect(unnamed?.outcome == .invalid)
        #expect(unnamed?.description.contains("'broken'") == true)
        request.headerFields[.contentType] = "multipart/form-data; boundary=own"
        let other = await failure { try await manager.download(request, body: .multipart(MultipartForm())) }
        #expect(other?.outcome == .invalid)
        #expect(other?.description.contains("boundary") == true)
    }

    @Test func aPartThatCannotBeReadEndsTheRequest() async throws {
        let folder = try TemporaryFolder()
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var form = MultipartForm()
            form.append("a", name: "title")
            form.append(.file(URL(fileURLWithPath: folder.file("none"))), name: "file")
            let error = await failure { try await manager.download(origin.request(.post), body: .multipart(form)) }
            guard case .requestBody(let text) = error else { return unexpected(error as Any) }
            #expect(text.contains(folder.file("none")))
            #expect(origin.server.log.allSatisfy { !$0.isComplete })
        }
    }
}
