// Housekeeping in the admin API: purges and pins.

package import AdminAPI
import Configuration
import HTTPWire

/// Implemented where the daemon is put together.
package protocol HousekeepingActions: Sendable {
    /// Returns when the purge is in force in every tier, and a restart does not undo it.
    func purge(_ question: PurgeQuery) async throws(Problem) -> AdminPurge
    /// Pins a URL, or lets go of it.
    func setPinned(_ url: String, _ isPinned: Bool) async throws(Problem) -> AdminPin
    func pins() async -> AdminPins
}

/// What `DELETE /v1/entries` asks for.
package struct PurgeQuery: Sendable, Equatable {
    package enum Target: Sendable, Equatable {
        /// As a client would send them, or of origins.
        case urls([String])
        case prefixes([String])
        case globs([String])
        case tags([String])
        /// In seconds.
        case olderThan(Int64)
        case all
    }

    package var target: Target
    /// Only of this service, empty for forward mode; nil for all.
    package var service: String?
    package var isSoft: Bool

    /// URLs, prefixes, patterns or tags of one request at most.
    package static let most = 100
    /// Bytes of one of them at most.
    package static let longest = 8192

    package init(_ target: Target, service: String? = nil, isSoft: Bool = false) {
        self.target = target
        self.service = service
        self.isSoft = isSoft
    }

    /// `url=`, `prefix=`, `glob=` or `tag=`, each as often as there are values, or `older_than=`, or `all`; with
    /// `service=` and `soft` where they are wanted.
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

extension HousekeepingActions {
    /// What purges, and what pins.
    package var keepingRoutes: [AdminRoute] {
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
    /// The URL of a pin.
    fileprivate var url: String {
        get throws(Problem) {
            guard queryItems.count == 1, let url = query["url"], !url.isEmpty else {
                throw .badQuery("give url=URL, and nothing else")
            }
            return url
        }
    }
}
