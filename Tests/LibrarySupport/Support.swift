// A download manager in a folder of its own, and an origin on loopback that counts what it is asked.

package import Drydock
package import Foundation
import HTTPTypes
package import TestSupport
import Testing

/// A manager whose store is in `folder`, with small limits and nothing that a test does not set.
package func makeManager(
    _ folder: TemporaryFolder? = nil,
    _ change: (inout DownloadConfiguration) -> Void = { _ in }
) -> DownloadManager {
    var configuration = DownloadConfiguration()
    configuration.disk = folder.map {
        DownloadConfiguration.DiskStore(folder: URL(fileURLWithPath: $0.file("store")), minimumFree: 0)
    }
    change(&configuration)
    return DownloadManager(configuration: configuration)
}

/// As ``withManager(onDisk:configure:_:_:)`` with the default configuration.
package func withManager(
    onDisk: Bool = false,
    _ reply: @escaping ScriptedOrigin.Handler,
    _ test: (DownloadManager, Origin) async throws -> Void
) async throws {
    try await withManager(onDisk: onDisk, configure: { _ in }, reply, test)
}

/// Runs a test with a manager and its origin, and closes the manager, whatever comes.
/// - Parameters:
///   - onDisk: whether there is a disk store.
///   - change: what the test configures.
///   - reply: what the origin answers.
package func withManager(
    onDisk: Bool = false,
    configure change: (inout DownloadConfiguration) -> Void,
    _ reply: @escaping ScriptedOrigin.Handler,
    _ test: (DownloadManager, Origin) async throws -> Void
) async throws {
    let folder = onDisk ? try TemporaryFolder("drydock-library") : nil
    let origin = Origin(try ScriptedOrigin(reply))
    let manager = makeManager(folder, change)
    do {
        try await test(manager, origin)
    } catch {
        await manager.close()
        throw error
    }
    await manager.close()
}

/// Has the one loop of a manager answer so many downloads, one after the other: whatever else it could do there has had
/// its turn meanwhile, again and again.
/// - Returns: the fewest transfers that were under way while one of them was; 1 where there was no other.
@discardableResult
package func giveTurns(_ count: Int, to manager: DownloadManager) async throws -> Int {
    let fewest = Monitor(Int.max)
    let other = Origin(
        try ScriptedOrigin { request in
            fewest.update { $0 = min($0, manager.statistics.running) }
            return .answer(to: request, "a turn")
        }
    )
    let options = DownloadOptions(cachePolicy: .bypass)
    for _ in 0..<count { _ = try await manager.download(other.url(), options: options) }
    return fewest.read { $0 }
}

/// The origin, and the URLs on it.
package struct Origin: Sendable {
    package let server: ScriptedOrigin

    package init(_ server: ScriptedOrigin) { self.server = server }

    package func url(_ path: String = "/a") -> URL {
        guard let url = URL(string: server.url + path) else { preconditionFailure("a test names \(path)") }
        return url
    }

    /// Waits until so many requests have come; a test that blocked its thread would keep the manager from asking.
    package func isAsked(_ count: Int, method: String? = nil) async -> Bool {
        await eventually { server.requests(method: method) >= count }
    }

    /// How many requests came with this method.
    package func count(_ method: String, _ path: String? = nil) -> Int { server.requests(method: method, target: path) }
}

/// A resource that changes when the test says so; it answers HEAD and conditions, and says nothing about its lifetime.
package final class ChangingResource: Sendable {
    private let state = Monitor((version: 1, isFailing: false))

    package init() {}

    package func change() { state.update { $0.version += 1 } }

    package var isFailing: Bool {
        get { state.read { $0.isFailing } }
        set { state.update { $0.isFailing = newValue } }
    }

    package var text: String { "version \(state.read { $0.version })" }

    package func reply(_ request: OriginRequest) -> OriginReply {
        let (version, isFailing) = state.read { $0 }
        if isFailing { return .answer(500, to: request, "out of order") }
        let date = Self.date(version)
        if request.method == "GET", request.field("If-Modified-Since") == date {
            return OriginReply([OriginReply.head(304, fields: [("Last-Modified", date)])])
        }
        return .answer(to: request, fields: [("Last-Modified", date)], "version \(version)")
    }

    /// A day for each version: it says the same whenever it is asked.
    private static func date(_ version: Int) -> String { String(format: "Mon, %02d May 2023 10:00:00 GMT", version) }
}

extension DownloadError {
    /// The kind of an origin's failure; nil for every other error.
    package var originKind: OriginFailure.Kind? {
        if case .origin(let failure) = self { failure.kind } else { nil }
    }
}

extension DownloadResult {
    package var text: String { String(decoding: data, as: UTF8.self) }

    /// The value of Cache-Status without the name of the cache, and with a sign in the place of how many seconds.
    package var cacheStatus: String {
        let value = head.headerFields[.init("Cache-Status") ?? .age] ?? ""
        return value.split(separator: "; ").dropFirst().map { part in
            guard part.hasPrefix("ttl=") else { return String(part) }
            return part.hasPrefix("ttl=-") ? "ttl=-" : "ttl=+"
        }.joined(separator: "; ")
    }
}

/// The error that a download ends with.
package func failure(_ work: () async throws -> DownloadResult) async -> DownloadError? {
    do {
        let result = try await work()
        Issue.record("there was a result: \(result)")
    } catch let error as DownloadError {
        return error
    } catch {
        Issue.record("\(error) is no DownloadError")
    }
    return nil
}

/// A port of 127.0.0.1 that refuses connections, and that nobody else gets while it is held.
package final class ClosedPort: Sendable {
    package let number: Int
    private let descriptor: Int32

    package init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            // The two structures are one and the same to the kernel; the pointer is used during the call alone.
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                bind(descriptor, raw, length) == 0 ? getsockname(descriptor, raw, &length) : -1
            }
        }
        guard descriptor >= 0, result == 0 else { throw TestSupportError.system(call: "bind", code: errno) }
        self.descriptor = descriptor
        number = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }
}

/// Records what a test did not expect.
package func unexpected(_ value: Any) {
    Issue.record("\(value)")
}
