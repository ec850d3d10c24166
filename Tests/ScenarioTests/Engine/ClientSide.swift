// The client of one way: sends what a script says on connections that it keeps, and reads what arrives.

import Foundation
import TestSupport

/// A connection with a request that was sent and not read yet.
struct SentRequest {
    let client: RawClient
    let method: String
}

/// Used by one thread at a time.
final class ClientSide {
    private let port: Int
    private var idle: [RawClient] = []

    init(port: Int) { self.port = port }

    /// Sends a request on a connection that is idle, or on a new one.
    func send(_ script: RequestScript, target: String, authority: String, scope: ScriptScope) throws -> SentRequest {
        let client = try connection()
        var head = "\(script.method) \(target) \(script.version)\r\n"
        var fields = [(String, String)]()
        for field in script.fields { fields.append((field.name, try scope.expand(field.value))) }
        let names = Set(fields.map { $0.0.lowercased() }).union(script.omitted)
        if !names.contains("host") { head += "Host: \(authority)\r\n" }
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        let body = script.body.map(ClientSide.bytes)
        if script.isChunked, !names.contains("transfer-encoding") {
            head += "Transfer-Encoding: chunked\r\n"
        } else if let body, !names.contains("content-length"), !names.contains("transfer-encoding") {
            head += "Content-Length: \(body.count)\r\n"
        }
        try client.send(head + "\r\n")
        let expects = fields.contains { $0.0.lowercased() == "expect" && $0.1.lowercased() == "100-continue" }
        if let body, try !expects || client.isToldToContinue() {
            guard script.isChunked else {
                try client.send(body)
                return SentRequest(client: client, method: script.method)
            }
            if !body.isEmpty {
                try client.send(Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n".utf8))
            }
            try client.send("0\r\n" + script.trailers.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n")
        }
        return SentRequest(client: client, method: script.method)
    }

    /// Reads the answer, and keeps the connection where both sides do.
    func read(_ sent: SentRequest) throws -> RawResponse {
        let response = try sent.client.readResponse(method: sent.method)
        guard !sent.client.hasUnreadBytes else { throw RawClientError.malformed("bytes after the end of the response") }
        let closes = response.head.all("Connection").contains { $0.lowercased().contains("close") }
        if response.end == .complete, !closes, response.head.version == "HTTP/1.1", response.framing != .untilClose {
            idle.append(sent.client)
        }
        return response
    }

    private func connection() throws -> RawClient {
        while let client = idle.popLast() {
            if client.isIdle { return client }
        }
        return try RawClient(port: port)
    }

    static func bytes(_ body: ScriptBody) -> [UInt8] {
        switch body {
        case .bytes(let bytes): bytes
        case .pattern(let count): Pattern.bytes(0..<count)
        }
    }
}
