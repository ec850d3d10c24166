// What became of reloads, as the service manager, metrics and `drydock status` tell it.

import Glibc
import ProxyServer
import Synchronization

/// The record of a daemon's reloads.
///
/// Sendable: its state is under a mutex.
final class ReloadRecord: DaemonFeature {
    /// What is read again.
    enum Subject: CaseIterable {
        /// The configuration, with all its files.
        case configuration
        /// The files alone that answers are made of, after one of them has changed.
        case answers

        /// The words that begin the status of a daemon that has refused it.
        var refusal: String {
            switch self {
            case .configuration: "reload refused"
            case .answers: "changed files refused"
            }
        }
    }

    private struct State {
        /// The first line of the error for each subject that was refused and has not been read without errors since.
        var refusals: [Subject: String] = [:]
        var accepted = 0
        var refused = 0
        /// When a configuration came into force last, in seconds since 1970.
        var lastSuccess = Int(time(nil))
    }

    /// The longest text of a refusal, in bytes: a notification to the service manager has room for 4 KiB.
    private static let longest = 1000
    private let state = Mutex(State())

    /// Records that a subject was read and is in force. A configuration brings its answers with it.
    func accept(_ subject: Subject) {
        let now = Int(time(nil))
        state.withLock { state in
            state.accepted += 1
            state.refusals[.answers] = nil
            guard subject == .configuration else { return }
            state.refusals[.configuration] = nil
            state.lastSuccess = now
        }
    }

    /// Records that a subject was refused, so that what was in force stays there.
    func refuse(_ subject: Subject, _ error: DaemonError) {
        let lines = error.description.split(separator: "\n")
        var text = String(lines.first ?? "")
        if text.utf8.count > Self.longest {
            text = String(decoding: text.utf8.prefix(Self.longest), as: UTF8.self) + "…"
        }
        if lines.count > 1 { text += " (and \(lines.count - 1) more)" }
        let refusal = text
        state.withLock { state in
            state.refused += 1
            state.refusals[subject] = refusal
        }
    }

    /// What was refused and why, in one line with the place of the first error; nil if nothing is refused.
    var refusal: String? {
        let refusals = state.withLock { $0.refusals }
        return Subject.allCases.lazy.compactMap { subject in refusals[subject].map { "\(subject.refusal): \($0)" } }
            .first
    }

    /// The status for the service manager: the refusal, if there is one, before the daemon's usual line.
    func status(_ line: String) -> String { refusal.map { "\($0); \(line)" } ?? line }

    var gauges: [Gauge] {
        func total(_ result: String, _ count: @escaping @Sendable () -> Int) -> Gauge {
            Gauge(
                "drydock_config_reloads_total",
                "Reloads, and changed files of answers that were read again, by what became of them.",
                isCounter: true,
                label: ("result", result),
                read: count
            )
        }
        return [
            Gauge(
                "drydock_config_reload_success",
                "1 if what was read last is in force, 0 if it was refused.",
                read: { [self] in refusal == nil ? 1 : 0 }
            ),
            Gauge(
                "drydock_config_reload_time_seconds",
                "When the configuration in force was read, in seconds since 1970.",
                read: { [self] in state.withLock { $0.lastSuccess } }
            ),
            total("accepted") { [self] in state.withLock { $0.accepted } },
            total("refused") { [self] in state.withLock { $0.refused } },
        ]
    }
}
