// The file in which learned latencies of origins are kept over a restart of the daemon.

import DemoMode
import EventLoop
import Files
import FoundationEssentials
import Glibc
import Logging
import Plans
import ProxyServer
import ServiceCore
import Synchronization

/// Reads and writes the file of learned latencies. Its functions block: they belong on an I/O thread.
///
/// Sendable: the mutex lets one read or write happen at a time.
final class LatencyFile: Sendable {
    /// The content of the file, as JSON.
    private struct Document: Codable {
        static let currentVersion = 1

        var version = currentVersion
        /// The number of latencies in each bucket, by the name of the route and by the first nanosecond of the bucket.
        var latencies: [String: [String: UInt32]]
    }

    /// The outcome of reading the file.
    private enum Finding {
        case absent
        case known([UInt8])
        case unreadable(SystemError)
        /// The file is not such a document, or has another version.
        case foreign
    }

    private struct State {
        var path: String?
        /// The bytes that were read or written last; equal bytes are not written again.
        var known: [UInt8] = []
        /// The file of a configuration that is not in force yet, and what was read from it.
        var next: (path: String?, finding: Finding)?
    }

    private let latencies: LearnedLatencies
    private let logger: Logger
    private let state = Mutex(State())

    init(_ latencies: LearnedLatencies, logger: Logger) {
        self.latencies = latencies
        self.logger = logger
    }

    /// Reads the file of a configuration that may come into force; its latencies fill in for what was not learned
    /// since. Writes nothing.
    func prepare(_ path: String?) {
        state.withLock { state in
            state.next = nil
            guard state.path != path else { return }
            state.next = (path, path.map(read) ?? .absent)
        }
    }

    /// Makes the prepared file the one that is written from now on; logs a warning if it cannot be used.
    func follow() {
        state.withLock { state in
            guard let next = state.next else { return }
            state = State(path: next.path)
            guard let path = next.path else { return }
            switch next.finding {
            case .absent: break
            case .known(let bytes): state.known = bytes
            case .unreadable(let error):
                // A file that cannot be read is not written either.
                state.path = nil
                logger.warning(
                    "learned latencies cannot be read, and are not kept: \(error); see to the permissions, and reload"
                )
            case .foreign:
                let aside = "\(path).broken"
                let isAside = rename(path, aside) == 0
                if !isAside { state.path = nil }
                logger.warning(
                    "\(path) has no learned latencies that this version can read; \(isAside ? "it is \(aside) now, and learning begins anew" : "they are not kept until it is removed")"
                )
            }
        }
    }

    private func read(_ path: String) -> Finding {
        guard access(path, F_OK) == 0 else { return .absent }
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try WholeFile.read(path) } catch { return .unreadable(error) }
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)),
            document.version == Document.currentVersion
        else { return .foreign }
        latencies.fill(
            document.latencies.map { name, buckets in
                let buckets = buckets.compactMap { start, count in UInt64(start).map { ($0, count) } }
                return (name, LatencyHistogram(buckets.sorted { $0.0 < $1.0 }))
            }
        )
        return .known(bytes)
    }

    /// Writes the learned latencies if there is a file and something is new. A failure is logged, and the next turn
    /// tries again.
    func save() {
        state.withLock { state in
            guard let path = state.path else { return }
            var document = Document(latencies: [:])
            for latency in latencies.all {
                let buckets = latency.current.buckets.map { ("\($0.start)", $0.count) }
                if !buckets.isEmpty { document.latencies[latency.name] = Dictionary(uniqueKeysWithValues: buckets) }
            }
            if document.latencies.isEmpty, state.known.isEmpty { return }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
            guard let data = try? encoder.encode(document) else { return }
            let bytes = [UInt8](data) + [UInt8(ascii: "\n")]
            guard bytes != state.known else { return }
            do throws(SystemError) {
                try WholeFile.replace(path, with: bytes)
                state.known = bytes
            } catch {
                logger.warning("learned latencies cannot be kept: \(error); make room, or see to the permissions")
            }
        }
    }
}

/// Saves the learned latencies once a minute, and when the daemon ends.
///
/// Sendable: it has no mutable state of its own.
final class LatencyKeeper: DaemonFeature {
    /// Nanoseconds between two saves.
    private static let pause: UInt64 = 60_000_000_000

    private let file: LatencyFile
    private let latencies: LearnedLatencies
    private let pool: IOPool

    init(_ parts: DaemonParts) {
        file = parts.compiler.latencyFile
        latencies = parts.compiler.registry.latencies
        pool = parts.files
    }

    var gauges: [Gauge] {
        [
            Gauge(
                "drydock_learned_latencies",
                "Answers of origins that learned latencies are made of.",
                read: { [latencies] in latencies.count }
            )
        ]
    }

    /// The schedule of the saves; none if nothing is learned.
    /// - Parameter wantsLatencies: true if some route learns the latency of its origin.
    func schedules(_ wantsLatencies: Bool) -> [Schedules.Plan] {
        guard wantsLatencies else { return [] }
        return [
            Schedules.Plan(identity: "learned latencies", every: Self.pause, atStart: false) { [file, pool] _ in
                _ = try? await pool.run { file.save() }
            }
        ]
    }

    /// Saves for the last time. Blocks.
    func stop() { file.save() }
}
