// What calls take that wait: ten thousand at once for an origin that never answers.

import AsyncHTTPClient
import Drydock
import Foundation
import Glibc
import Synchronization

/// Anonymous memory of this process, in KiB.
private func anonymous() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("Anonymous:") }
    return line.flatMap { Int($0.split(separator: " ")[1]) } ?? 0
}

/// A port where connections are made, and nobody reads.
private func silentPort() throws -> UInt16 {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
            bind(listener, raw, length) == 0 && listen(listener, 128) == 0 && getsockname(listener, raw, &length) == 0
        }
    }
    guard isBound else { throw Failure(description: "no port for an origin that never answers") }
    return UInt16(bigEndian: address.sin_port)
}

/// Calls that have begun and have not ended. Sendable: the number is under a mutex.
private final class Begun: Sendable {
    private let number = Mutex(0)

    var count: Int { number.withLock { $0 } }

    func during(_ call: () async -> Void) async {
        number.withLock { $0 += 1 }
        await call()
        number.withLock { $0 -= 1 }
    }
}

/// A way to call. Each has a closure of its own: one closure for all of them would give each call a frame for all.
private struct Way {
    let name: String
    /// Calls a URL of the origin that never answers.
    let call: @Sendable (String) async -> Void
    /// How many calls wait.
    let waiting: @Sendable () -> Int
    let close: @Sendable () async -> Void

    /// By a manager without a disk, or by services over it.
    static func drydock(
        _ name: String,
        _ make: (DownloadManager, ServiceManager) -> @Sendable (String) async -> Void
    ) async throws -> Way {
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        configuration.abandonment = .abort
        let manager = DownloadManager(configuration: configuration)
        try await manager.open()
        return Way(
            name: name,
            call: make(manager, ServiceManager(transport: manager)),
            waiting: { manager.statistics.running + manager.statistics.waiting },
            close: { await manager.close() }
        )
    }

    static func asyncHTTPClient() -> Way {
        let client = HTTPClient(eventLoopGroupProvider: .singleton)
        let begun = Begun()
        return Way(
            name: "async-http-client, GET",
            call: { text in
                await begun.during { _ = try? await client.execute(HTTPClientRequest(url: text), timeout: .hours(1)) }
            },
            waiting: { begun.count },
            close: { try? await client.shutdown() }
        )
    }
}

/// Prints what each of so many waiting calls takes, and what of it stays when all of them have ended.
func measureCrowd(_ count: Int = 10_000) async throws {
    let origin = "http://127.0.0.1:\(try silentPort())"
    let past = DownloadOptions(cachePolicy: .bypass)
    let ways = [
        try await Way.drydock("download, past the store") { manager, _ in
            { text in if let url = URL(string: text) { _ = try? await manager.download(url, options: past) } }
        },
        try await Way.drydock("download") { manager, _ in
            { text in if let url = URL(string: text) { _ = try? await manager.download(url) } }
        },
        try await Way.drydock("service, GET") { _, services in
            { text in _ = try? await services.call(HTTPResource(.get(text), .text)) }
        },
        try await Way.drydock("service, POST") { _, services in
            { text in _ = try? await services.call(HTTPResource(.post(text), .text)) }
        },
        Way.asyncHTTPClient(),
    ]
    for way in ways {
        let before = anonymous()
        let calls = (0..<count).map { number in Task { await way.call("\(origin)/\(number)") } }
        while way.waiting() < count { try await Task.sleep(for: .milliseconds(20)) }
        // The last of them are on their way still.
        try await Task.sleep(for: .milliseconds(500))
        let waiting = anonymous() - before
        for call in calls { call.cancel() }
        for call in calls { await call.value }
        while way.waiting() > 0 { try await Task.sleep(for: .milliseconds(20)) }
        try await Task.sleep(for: .seconds(1))
        let left = anonymous() - before
        let shown = [waiting, left].map { String(format: "%.1f", Double($0) / Double(count)) }
        print("\(padded(way.name, 34))\(padded("\(shown[0]) KiB each", 22))\(shown[1]) KiB when all have ended")
        await way.close()
    }
}
