// The operator's orders about the levels of the daemon's own log: show them, set some for a time, take that back.

package import Configuration
import EventLoop
import HTTPWire
import Logging
import Matching
package import Policies
package import ProxyServer

/// Shows and sets the levels of the log's modules, and ends levels whose time is over.
///
/// Sendable: the levels are in the settings of the log, and the timer for their end protects itself.
final class LogControl: DaemonFeature {
    private let context: DaemonContext
    private let reloader: Reloader
    private let timer = OrderTimer()

    init(_ context: DaemonContext, reloader: Reloader) {
        self.context = context
        self.reloader = reloader
    }

    /// The levels in force.
    func levels() -> AdminLog {
        let (settings, now) = (context.parts.logSettings, Monotonic.now())
        let changes = settings.changes
        return AdminLog(
            modules: LogModule.allCases.map { module in
                let configured = settings.configured(module).rawValue
                let change = changes[module]
                return AdminLog.Module(
                    name: module.rawValue,
                    level: change?.level.rawValue ?? configured,
                    configured: configured,
                    // A second that has begun counts as a whole one.
                    left: change.map { Int((($0.end > now ? $0.end - now : 0) + 999_999_999) / 1_000_000_000) }
                )
            }
        )
    }

    /// Sets levels, or takes all set levels back; returns when every loop logs by them.
    func change(_ order: LogOrder) async -> AdminLog {
        let settings = context.parts.logSettings
        let now = Monotonic.now()
        switch order {
        case .reset: tell(ended: settings.endChanges(at: .max))
        case .set(let levels, let seconds):
            let end = now &+ UInt64(seconds) &* 1_000_000_000
            settings.change(levels.mapValues { LogSettings.Change(level: $0, end: end) })
            let words = LogModule.allCases.compactMap { module in
                levels[module].map { "\(module.rawValue)=\($0.rawValue)" }
            }
            context.parts.logger.notice(
                "log levels set",
                metadata: ["levels": "\(words.joined(separator: " "))", "for": "\(Lifetimes.text(seconds))"]
            )
        }
        await reloader.renewTraces()
        wait()
        return levels()
    }

    private func tell(ended: [LogModule]) {
        guard !ended.isEmpty else { return }
        let settings = context.parts.logSettings
        let words = ended.map { "\($0.rawValue)=\(settings.configured($0).rawValue)" }.joined(separator: " ")
        context.parts.logger.notice("log levels are those of the configuration again", metadata: ["levels": "\(words)"])
    }

    /// Sets the timer for the next end of a level, in place of the previous timer.
    private func wait() {
        let end = context.parts.logSettings.changes.values.map(\.end).min()
        timer.set(end, on: context.parts.loops.loops[0]) { [weak self] in await self?.endLevels() }
    }

    private func endLevels() async {
        tell(ended: context.parts.logSettings.endChanges(at: Monotonic.now()))
        await reloader.renewTraces()
        wait()
    }

    /// Cancels the timer: no level ends by itself after this.
    func stop() { timer.cancel() }

    var routes: [AdminRoute] {
        [
            AdminRoute(.get, .log) { request async throws(Problem) in
                try request.check([])
                return try .json(self.levels())
            },
            AdminRoute(.post, .log) { request async throws(Problem) in
                try .json(await self.change(try LogOrder(members: request.queryItems)))
            },
        ]
    }
}

/// What `POST /v1/log` asks for.
package enum LogOrder: Sendable, Equatable {
    /// These modules have these levels for so many seconds.
    case set([LogModule: LogConfiguration.Level], seconds: Int64)
    /// All modules have the configuration's levels again.
    case reset

    /// The seconds for which levels hold if the order does not say it: an operator may forget them, and at the level
    /// debug every request takes the waiting path.
    package static let usualSeconds: Int64 = 600
    /// The most seconds for which levels hold; for longer there is `log.modules`.
    package static let mostSeconds: Int64 = 86_400
    /// The word that stands for every module.
    package static let everyModule = "all"

    /// Parses the query: `MODULE=LEVEL` for one or more modules or for `all`, and `for=DURATION` or not; or `reset`. A
    /// later member wins over an earlier one.
    /// - Throws: a 400 that names the mistake.
    package init(members: AdminQuery.Members) throws(Problem) {
        var (levels, seconds, resets) = ([LogModule: LogConfiguration.Level](), nil as Int64?, false)
        for (name, value) in members {
            switch name {
            case "reset" where value.isEmpty: resets = true
            case "for" where seconds == nil: seconds = try Self.seconds(value)
            case Self.everyModule:
                let level = try Self.level(value, of: name)
                for module in LogModule.allCases { levels[module] = level }
            default:
                guard let module = LogModule(rawValue: name) else { throw Self.unknown(name) }
                levels[module] = try Self.level(value, of: name)
            }
        }
        if resets != levels.isEmpty || resets && seconds != nil {
            throw .badQuery("give one or more of MODULE=LEVEL, with for=DURATION or not; or reset")
        }
        self = resets ? .reset : .set(levels, seconds: seconds ?? Self.usualSeconds)
    }

    private static func seconds(_ text: String) throws(Problem) -> Int64 {
        let seconds: Int64
        do throws(Lifetimes.Malformed) { seconds = try Lifetimes.seconds(text) } catch {
            throw .badQuery("for: \(error)")
        }
        guard (1...mostSeconds).contains(seconds) else {
            throw .badQuery(
                "for: \(text) is not from 1s to \(Lifetimes.text(mostSeconds)); for longer, write log.modules into the configuration"
            )
        }
        return seconds
    }

    private static func level(_ word: String, of module: String) throws(Problem) -> LogConfiguration.Level {
        if let level = LogConfiguration.Level(rawValue: word) { return level }
        let known = LogConfiguration.Level.allCases.map(\.rawValue)
        throw .badQuery("\(module): \(word) is not a level; \(help(word, known))")
    }

    private static func unknown(_ name: String) -> Problem {
        .badQuery("\(name) is no module of the log; \(help(name, LogModule.allCases.map(\.rawValue) + [everyModule]))")
    }

    private static func help(_ word: String, _ known: [String]) -> String {
        Suggestions.nearest(to: word, among: known).map { "did you mean \($0)?" }
            ?? "there are \(known.joined(separator: ", "))"
    }
}

// MARK: - Documents

/// The document of `GET /v1/log`, which `POST /v1/log` answers, too.
package struct AdminLog: Codable, Sendable, Equatable {
    /// A module of the daemon's own log.
    package struct Module: Codable, Sendable, Equatable {
        package var name: String
        /// The level in force.
        package var level: String
        /// The level of the configuration.
        package var configured: String
        /// Seconds until the level is the configuration's again; nil if it is.
        package var left: Int?
    }

    /// The modules in the order in which the configuration names them.
    package var modules: [Module]
}
