// Downloads by Drydock beside async-http-client, from one origin in one run:
//
//     LibraryBenchmark ORIGIN [ROUNDS [SHARE]]
//
// ORIGIN/1024 and ORIGIN/1048576 are files of so many bytes. The two clients take turns, round by round, and a ratio is
// made within a round; with 0 ROUNDS only the memory of calls that wait is measured. SHARE is the part of the usual
// number of operations, 1 by default. Ends with 1 if a goal is not reached.

import AsyncHTTPClient
import Drydock
import Foundation
import NIOCore

struct Failure: Error, CustomStringConvertible {
    let description: String
}

/// One line of the table: the same work by both, or by Drydock alone beside a line above.
struct Comparison {
    let name: String
    /// The most that Drydock's CPU time may be of the other's.
    let goal: Double
    let count: Int
    let width: Int
    let ours: @Sendable () async throws -> Void
    let theirs: @Sendable () async throws -> Void
    /// Operations of the other; as many as ours where nothing is said.
    var othersCount: Int?
}

let arguments = CommandLine.arguments
guard arguments.count >= 2, URL(string: arguments[1]) != nil else {
    print("usage: LibraryBenchmark ORIGIN [ROUNDS [SHARE]]")
    exit(2)
}
let origin = arguments[1]
let rounds = arguments.count > 2 ? max(0, Int(arguments[2]) ?? 5) : 5
let share = arguments.count > 3 ? Double(arguments[3]) ?? 1 : 1

var configuration = DownloadConfiguration()
configuration.disk = nil
configuration.maximumFetches = nil
let manager = DownloadManager(configuration: configuration)
let client = HTTPClient(eventLoopGroupProvider: .singleton)

/// By Drydock, past its store.
@Sendable func fetchByDrydock(_ url: URL, _ size: Int) async throws {
    let result = try await manager.download(url, options: .init(cachePolicy: .bypass))
    guard result.outcome == .downloaded, result.data.count == size else { throw Failure(description: "\(result)") }
}

/// By Drydock, from memory.
@Sendable func takeFromMemory(_ url: URL, _ size: Int) async throws {
    let result = try await manager.download(url)
    guard result.outcome == .stillValid, result.data.count == size else { throw Failure(description: "\(result)") }
}

@Sendable func fetchByClient(_ url: String, _ size: Int) async throws {
    let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
    let body = try await response.body.collect(upTo: 2 << 20)
    guard response.status == .ok, body.readableBytes == size else { throw Failure(description: "\(response)") }
}

/// - Parameter count: operations of a round.
func comparison(_ name: String, _ size: Int, count: Int, width: Int) throws -> Comparison {
    let text = "\(origin)/\(size)"
    guard let url = URL(string: text) else { throw Failure(description: "\(text) is no URL") }
    return Comparison(
        name: name,
        goal: 1,
        count: max(width, Int(Double(count) * share)),
        width: width,
        ours: { try await fetchByDrydock(url, size) },
        theirs: { try await fetchByClient(text, size) }
    )
}

func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}

/// Lets the two clients take turns, and prints a table.
/// - Returns: whether every goal is reached.
@MainActor func compare() async throws -> Bool {
    let (small, large) = (1024, 1 << 20)
    var all = [
        try comparison("GET 1 KiB, one at a time", small, count: 4000, width: 1),
        try comparison("GET 1 KiB, 16 at a time", small, count: 8000, width: 16),
        try comparison("GET 1 MiB, one at a time", large, count: 200, width: 1),
    ]
    guard let url = URL(string: "\(origin)/\(small)") else { throw Failure(description: "\(origin) is no URL") }
    _ = try await manager.download(url)
    all.append(
        Comparison(
            name: "1 KiB from memory, beside a GET",
            goal: 0.25,
            count: Int(40_000 * share),
            width: 1,
            ours: { try await takeFromMemory(url, small) },
            theirs: all[0].theirs,
            othersCount: all[0].count
        )
    )
    // Connections are there, and code is loaded.
    for one in all { _ = try await measure(max(one.width, one.count / 10), atOnce: one.width, one.ours) }
    for one in all { _ = try await measure(max(one.width, all[0].count / 10), atOnce: one.width, one.theirs) }
    var costs = all.map { _ in (ours: [Cost](), theirs: [Cost]()) }
    for _ in 0..<rounds {
        for (index, one) in all.enumerated() {
            costs[index].ours.append(try await measure(one.count, atOnce: one.width, one.ours))
            let count = one.othersCount ?? one.count
            costs[index].theirs.append(try await measure(count, atOnce: one.width, one.theirs))
        }
    }
    print("\(padded("", 34))\(padded("Drydock", 22))\(padded("async-http-client", 22))ratio  goal")
    var isGood = true
    for (one, cost) in zip(all, costs) {
        let ratio = middle(zip(cost.ours, cost.theirs).map { $0.cpu / $1.cpu })
        func shown(_ costs: [Cost]) -> String {
            let cost = Cost.median(costs)
            return padded(String(format: "%.1f us (%.1f us)", cost.cpu, cost.wall), 22)
        }
        let isReached = ratio <= one.goal
        if !isReached { isGood = false }
        let end = String(format: "%.2f   %.2f", ratio, one.goal)
        print("\(padded(one.name, 34))\(shown(cost.ours))\(shown(cost.theirs))\(end)\(isReached ? "" : "  missed")")
    }
    print("CPU time of an operation; in brackets the time that passed\n")
    return isGood
}

do {
    let isGood = rounds == 0 ? true : try await compare()
    print("Memory of 10,000 calls that wait")
    try await measureCrowd()
    await manager.close()
    let _: Void = try await client.shutdown()
    exit(isGood ? 0 : 1)
} catch {
    print("LibraryBenchmark: \(error)")
    exit(1)
}
