// What services and endpoints both say: read, resolved, and checked.

import Content
import HTTPCaching
import Policies
import Upstream

/// Where the settings of a service or an endpoint are read from.
struct RouteReader {
    /// With everything that is inherited.
    let reader: SectionReader
    /// Without that.
    let own: SectionReader
    let owner: DemoOwner
    /// What a quota that stands here counts for; empty: the service.
    let rateLimitScope: String
    /// Demo mode is on for the whole daemon.
    let daemonDemo: Bool
}

extension Resolver {
    /// What settings have besides that which their keys say alone.
    mutating func read(_ settings: inout RouteSettings, _ route: RouteReader) {
        let (reader, own) = (route.reader, route.own)
        settings.headers = HeaderRules(reader.section("headers"))
        settings.query = query(reader)
        check(timeout: reader.section("timeout"))
        settings.cache = cache(reader.section("cache"), own: own.section("cache"))
        settings.retry = RetryPolicy(reader.section("retry"), own: own.section("retry"))
        settings.mapping = mapping(reader.section("response"), settings.cache)
        settings.errorMapping = errorMapping(reader.section("error"), reader.section("response"))
        check(success: own, settings.success)
        check(retry: own, looksInside: settings.expect != .any || settings.types != nil || settings.mapping != nil)
        check(logBodies: own.section("log"))
        settings.recording = recording(reader, own: own)
        settings.faults = faults(reader)
        settings.rateLimit = rateLimit(reader, scope: route.rateLimitScope)
        settings.demo = demo(
            reader.section("demo"),
            own: own.section("demo"),
            answerOf: route.owner,
            isSource: RecordingConfiguration.isDemo(reader),
            daemonDemo: route.daemonDemo
        )
    }

    private func query(_ reader: SectionReader) -> [QueryRule] {
        reader.map("query").compactMap { entry in
            guard case .section(let entries) = entry.value.content else { return nil }
            let item = SectionReader(entries: entries, section: KeyTable.queryItem)
            let isSecret = item.entry("secret") == nil ? nil : item.bool("secret")
            return QueryRule(name: entry.key, values: item.texts("value"), isSecret: isSecret)
        }
    }

    private mutating func check(timeout reader: SectionReader) {
        for key in ["connect", "first_byte", "idle", "total", "tunnel"] {
            if let place = reader.place(key), reader.nanoseconds(key) == 0 {
                fail(place, "'timeout.\(key)' is zero; write none for no timeout")
            }
        }
    }

    /// - Parameters:
    ///   - own: the service or the endpoint without what it inherited.
    ///   - looksInside: there are bodies that would not do.
    private mutating func check(retry own: SectionReader, looksInside: Bool) {
        let reader = own.section("retry")
        if reader.texts("when").contains("content"), !looksInside {
            fail(
                place(reader, "when"),
                "'retry.when' has content, but 'response.expect' and 'response.type' are any and nothing is mapped; say what bodies must be, or remove content"
            )
        }
    }

    /// - Parameter own: the service or the endpoint without what it inherited.
    private mutating func check(success own: SectionReader, _ success: StatusSet?) {
        let response = own.section("response")
        guard let place = response.place("success"), let success else { return }
        if success.ranges.isEmpty {
            fail(
                place,
                "'response.success' is empty, so that every answer would be a failure; name a status, such as 2xx"
            )
        }
        for entry in own.section("cache").map("ttl_by_status") {
            guard let status = Int(entry.key), !success.ranges.isEmpty, !success.contains(status) else { continue }
            fail(
                entry.place,
                "'cache.ttl_by_status' has \(status), which 'response.success' leaves out, so that it is not stored; add it there, or remove it here"
            )
        }
    }

    /// - Parameter reader: of the section `log` of a service or an endpoint, without what it inherited.
    private mutating func check(logBodies reader: SectionReader) {
        guard let place = reader.place("bodies"), let size = reader.bytes("bodies"), size > 64 * 1024 || size == 0
        else {
            return
        }
        fail(place, "'log.bodies' takes a size from 1B to 64KiB, or none")
    }
}
