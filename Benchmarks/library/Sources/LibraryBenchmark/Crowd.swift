// What calls take that wait: ten thousand at once for an origin that never answers.

import Drydock
import Foundation
import Glibc

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

/// Prints what each of so many waiting calls takes, and what of it stays when all of them have ended.
func measureCrowd(_ count: Int = 10_000) async throws {
    let origin = "http://127.0.0.1:\(try silentPort())"
    for kind in ["download, past the store", "download", "service, GET", "service, POST"] {
        var configuration = DownloadManager.Configuration()
        configuration.disk = nil
        configuration.leaving = .abort
        let manager = DownloadManager(configuration: configuration)
        let services = ServiceManager(transport: manager)
        try await manager.open()
        let before = anonymous()
        let calls = (0..<count).map { number in
            Task {
                let text = "\(origin)/\(number)"
                guard let url = URL(string: text) else { return }
                switch kind {
                case "download": _ = try? await manager.download(url)
                case "service, GET": _ = try? await services.call(HTTPResource(.get(text), .text))
                case "service, POST": _ = try? await services.call(HTTPResource(.post(text), .text))
                default: _ = try? await manager.download(url, options: .init(bypassesStore: true))
                }
            }
        }
        while manager.statistics.running + manager.statistics.waiting < count {
            try await Task.sleep(for: .milliseconds(20))
        }
        let waiting = anonymous() - before
        for call in calls { call.cancel() }
        for call in calls { await call.value }
        while manager.statistics.running + manager.statistics.waiting > 0 {
            try await Task.sleep(for: .milliseconds(20))
        }
        try await Task.sleep(for: .seconds(1))
        let left = anonymous() - before
        let shown = [waiting, left].map { String(format: "%.1f", Double($0) / Double(count)) }
        print("\(padded(kind, 34))\(padded("\(shown[0]) KiB each", 22))\(shown[1]) KiB when all have ended")
        await manager.close()
    }
}
