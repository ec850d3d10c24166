// Purges and pins, by an operator's command or by a schedule of the configuration.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import HTTPWire
import Logging
import Policies
import ProxyServer
import Synchronization

/// Answers the commands that purge and pin, and runs the scheduled purges.
///
/// Sendable: it has no mutable state of its own.
final class PurgeService: DaemonFeature {
    private let context: DaemonContext
    private let stored: StoredEntries

    init(_ context: DaemonContext, stored: StoredEntries) {
        self.context = context
        self.stored = stored
    }

    private var parts: DaemonParts { context.parts }

    func purge(_ question: PurgeQuery) async throws(Problem) -> AdminPurge {
        var question = question
        if let service = question.service { question.service = try await stored.stored(service: service) }
        let rules = try await rules(question)
        do throws(PurgeError) {
            return AdminPurge(purged: try await purge(rules), isSoft: question.isSoft)
        } catch {
            throw Problem(status: 500, title: "Purge not written", detail: "\(error)")
        }
    }

    /// Purges, and logs what was purged or why it failed.
    private func purge(_ rules: [PurgeRule]) async throws(PurgeError) -> Int {
        let what = rules.prefix(3).map(\.description).joined(separator: "; ") + (rules.count > 3 ? "; …" : "")
        do throws(PurgeError) {
            let count = try await parts.core.housekeeping.purge(rules, on: parts.files)
            parts.log(.store).notice("purged", metadata: ["what": "\(what)", "responses": "\(count)"])
            return count
        } catch {
            parts.log(.store).error("\(error)", metadata: ["what": "\(what)"])
            throw error
        }
    }

    private func rules(_ question: PurgeQuery) async throws(Problem) -> [PurgeRule] {
        var targets: [PurgeRule.Target] = []
        switch question.target {
        case .urls(let urls):
            for url in urls {
                let keys = try await keys(of: url)
                let others = await stored.forms(of: url).filter { !$0.contains("*") && !keys.contains($0) }
                targets += (keys + others).map { .url($0) }
            }
        case .prefixes(let prefixes):
            // A stored form without a scheme matches any host, so it becomes a pattern.
            for prefix in prefixes {
                targets += await storedForms(prefix).map { $0.hasPrefix(":") ? .glob("*\($0)*") : .prefix($0) }
            }
        case .globs(let patterns):
            for pattern in patterns {
                targets += await storedForms(pattern).map { .glob($0.hasPrefix(":") ? "*\($0)" : $0) }
            }
        case .tags(let tags): targets = tags.map { .tag($0) }
        case .olderThan(let seconds): targets = [.olderThan(parts.core.clock.now() - seconds)]
        case .all: targets = [.all]
        }
        return targets.map { PurgeRule($0, service: question.service, isSoft: question.isSoft) }
    }

    /// The stored prefixes or patterns that `text` stands for. A path of this daemon is not a prefix of any stored URL,
    /// so that only its stored forms are taken.
    private func storedForms(_ text: String) async -> [String] {
        let forms = await stored.forms(of: text)
        return text.hasPrefix("/") && !forms.isEmpty ? forms : [text] + forms
    }

    /// The URLs of the stored responses that `url` stands for: itself, and the origin's URL if it is a URL of this
    /// daemon.
    /// - Throws: a refusal if it is a path that leads to no service.
    private func keys(of url: String) async throws(Problem) -> [String] {
        let isPath = url.hasPrefix("/")
        do throws(Problem) {
            let stored = try await context.explain(RequestQuestion(url: url)).stored
            let routed = stored.map { [$0.explanation.key.description] } ?? []
            return isPath || routed == [PurgeRule.normalised(url)] ? routed : [url] + routed
        } catch {
            // A response of an origin may be stored although forward mode would refuse its URL now.
            if isPath { throw error }
            return [url]
        }
    }

    func setPinned(_ url: String, _ isPinned: Bool) async throws(Problem) -> AdminPin {
        // Only pinning checks the URL: an older daemon may have pinned an invalid one, and it must be possible to unpin
        // it.
        if isPinned, !Self.isURL(url) {
            throw .badQuery(
                "'\(url)' is not a URL; give a path, or http://HOST/PATH, or a URL as 'drydock list' prints it"
            )
        }
        guard let key = try await keys(of: url).last else {
            throw .badQuery("nothing is ever stored for '\(url)'; give a URL as 'drydock list' prints it")
        }
        let pinned = PurgeRule.normalised(key)
        do throws(PinError) {
            let (core, files) = (parts.core, parts.files)
            let isChanged =
                isPinned
                ? try await core.housekeeping.pin(pinned, on: files)
                : try await core.housekeeping.unpin(pinned, on: files)
            parts.log(.store).notice(isPinned ? "pinned" : "unpinned", metadata: ["url": "\(pinned)"])
            return AdminPin(url: pinned, isPinned: isPinned, isChanged: isChanged)
        } catch {
            let status = if case .notWritten = error { 500 } else { 422 }
            throw Problem(status: status, title: isPinned ? "Not pinned" : "Not unpinned", detail: "\(error)")
        }
    }

    /// True if the text is a path of this daemon, or a URL with a scheme that cache keys have.
    private static func isURL(_ text: String) -> Bool {
        if text.hasPrefix("/") { return true }
        guard let parsed = try? RequestTarget.parse(text, method: .get),
            case .absolute(let scheme, let authority, _) = parsed.form
        else { return false }
        return ["http", "https", "service"].contains(scheme) && !authority.host.isEmpty
    }

    func pins() async -> AdminPins { AdminPins(urls: parts.core.invalidations.pins.all) }

    /// The schedules of the configuration that purge.
    func schedules(_ configuration: Configuration) -> [Schedules.Plan] {
        configuration.purge.map { wanted in
            Schedules.Plan(
                identity: "purge \(wanted)",
                every: wanted.schedule.every,
                atStart: wanted.schedule.atStart
            ) { [weak self] loop in await self?.purge(wanted) }
        }
    }

    /// Purges once, by a schedule.
    private func purge(_ wanted: PurgeConfiguration) async {
        let cutoff = wanted.olderThan.map { parts.core.clock.now() - $0 }
        let targets: [PurgeRule.Target?] = [
            cutoff.map { .olderThan($0) }, wanted.tag.map { .tag($0) }, wanted.prefix.map { .prefix($0) },
            wanted.glob.map { .glob($0) },
        ]
        let rules = targets.compactMap(\.self).map {
            PurgeRule($0, service: wanted.service, isSoft: wanted.isSoft)
        }
        // A failure has been logged already; the next turn tries again.
        _ = try? await purge(rules)
    }

    var gauges: [Gauge] {
        let core = parts.core
        return [
            Gauge("drydock_purged_total", "Stored responses that purges have removed.", isCounter: true) {
                core.housekeeping.purgeCounts.hard
            },
            Gauge("drydock_soft_purged_total", "Stored responses that purges have made stale.", isCounter: true) {
                core.housekeeping.purgeCounts.soft
            },
            Gauge("drydock_rules", "Purges and invalidations in force.") { core.invalidations.ruleCount },
            Gauge("drydock_pins", "Pinned URLs.") { core.invalidations.pins.count },
        ]
    }
}

/// The responses that `DELETE /v1/entries` is to purge.
struct PurgeQuery: Sendable, Equatable {
    enum Target: Sendable, Equatable {
        /// URLs, as a client sends them or as the origin receives them.
        case urls([String])
        case prefixes([String])
        case globs([String])
        case tags([String])
        /// Responses that are older than so many seconds.
        case olderThan(Int64)
        case all
    }

    var target: Target
    /// The service whose responses are purged; empty for forward mode, nil for all services.
    var service: String?
    var isSoft: Bool

    /// The largest number of URLs, prefixes, patterns or tags in one request.
    static let most = 100
    /// The largest length of one URL, prefix, pattern or tag, in bytes.
    static let longest = 8192

    init(_ target: Target, service: String? = nil, isSoft: Bool = false) {
        self.target = target
        self.service = service
        self.isSoft = isSoft
    }

    /// Parses `url=`, `prefix=`, `glob=` or `tag=`, each once for each value, or `older_than=`, or `all`; and
    /// optionally `service=` and `soft`.
    /// - Throws: a 400 that names the mistake.
    init(members: [(name: String, value: String)]) throws(Problem) {
        var values: [String: [String]] = [:]
        for (name, value) in members {
            switch name {
            case "url", "prefix", "glob", "tag", "older_than", "all": values[name, default: []].append(value)
            case "service" where service == nil: service = value
            case "soft" where value.isEmpty: values["soft"] = []
            default:
                throw .badQuery(
                    "\(name) is not known, given twice, or takes no value; "
                        + "there are url, prefix, glob, tag, older_than, all, service and soft"
                )
            }
        }
        isSoft = values.removeValue(forKey: "soft") != nil
        guard values.count == 1, let (name, texts) = values.first else {
            throw .badQuery("give one of url=, prefix=, glob=, tag=, older_than= and all")
        }
        target = try Self.target(name, texts)
    }

    private static func target(_ name: String, _ texts: [String]) throws(Problem) -> Target {
        if name == "all" {
            guard texts == [""] else { throw .badQuery("all takes no value, and is given once") }
            return .all
        }
        guard texts.count <= most else { throw .badQuery("\(texts.count) of \(name); give at most \(most) at once") }
        for text in texts where text.isEmpty || text.utf8.count > longest {
            throw .badQuery("\(name) is empty, or longer than \(longest) bytes")
        }
        switch name {
        case "url": return .urls(texts)
        case "prefix": return .prefixes(texts)
        case "glob": return .globs(texts)
        case "tag": return .tags(texts)
        default:
            guard texts.count == 1 else { throw .badQuery("give older_than once") }
            do throws(Lifetimes.Malformed) {
                return .olderThan(try Lifetimes.seconds(texts[0]))
            } catch {
                throw .badQuery("older_than: \(error)")
            }
        }
    }
}

extension PurgeService {
    var routes: [AdminRoute] {
        [
            AdminRoute(.delete, .entries) { request async throws(Problem) in
                try .json(await self.purge(try PurgeQuery(members: request.queryItems)))
            },
            AdminRoute(.get, .pins) { request async throws(Problem) in
                guard request.queryItems.isEmpty else { throw .badQuery("the list of pins takes no query") }
                return try .json(await self.pins())
            },
            AdminRoute(.put, .pins) { request async throws(Problem) in
                try .json(await self.setPinned(try request.url, true))
            },
            AdminRoute(.delete, .pins) { request async throws(Problem) in
                try .json(await self.setPinned(try request.url, false))
            },
        ]
    }
}

extension AdminRequest {
    /// The URL of a pin, which is the only item of the query.
    /// - Throws: a 400 for any other query.
    fileprivate var url: String {
        get throws(Problem) {
            guard queryItems.count == 1, let url = query["url"], !url.isEmpty else {
                throw .badQuery("give url=URL, and nothing else")
            }
            return url
        }
    }
}

// MARK: - Documents

/// The answer of `DELETE /v1/entries`.
package struct AdminPurge: Codable, Sendable, Equatable {
    /// The number of stored responses that were removed or made stale.
    package var purged: Int
    /// True if the responses are stale, and not removed.
    package var isSoft: Bool
}

/// The answer of `PUT /v1/pins` and `DELETE /v1/pins`.
package struct AdminPin: Codable, Sendable, Equatable {
    /// The URL in the form in which stored responses are listed.
    package var url: String
    package var isPinned: Bool
    /// False if the URL was pinned, or not pinned, already.
    package var isChanged: Bool
}

/// The document of `GET /v1/pins`.
package struct AdminPins: Codable, Sendable, Equatable {
    /// The pinned URLs in the order of their bytes.
    package var urls: [String]
}
