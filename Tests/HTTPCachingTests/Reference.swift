// A second, much shorter reading of RFC 9111 for a shared cache. It only forbids; where it is unsure it allows.

import HTTPWire

@testable import HTTPCaching

enum Reference {
    static func words(_ fields: Fields, _ name: String) -> [String] {
        fields.all(name).joined(separator: ",").lowercased().split(separator: ",").map { part in
            String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }

    static func seconds(_ words: [String], _ name: String) -> Int64? {
        words.compactMap { $0.hasPrefix(name + "=") ? Int64($0.dropFirst(name.count + 1).filter { $0 != "\"" }) : nil }
            .min()
    }

    static func mayStore(_ asked: RequestHead, _ answer: ResponseHead) -> Bool {
        let control = words(answer.fields, "cache-control")
        if words(asked.fields, "cache-control").contains("no-store") { return false }
        if asked.method == .post {
            let isExplicit = answer.fields.contains("expires") || control.contains { $0.contains("age=") }
            if !isExplicit || answer.status != 200 || answer.fields.all("content-location") != ["/"] { return false }
        } else if asked.method != .get {
            return false
        }
        if control.contains("no-store") && !control.contains("must-understand") { return false }
        if control.contains("private") || [206, 304, 429].contains(answer.status) { return false }
        if words(answer.fields, "vary").contains("*") { return false }
        return mayShare(asked, answer)
    }

    static func mayShare(_ asked: RequestHead, _ answer: ResponseHead) -> Bool {
        let control = words(answer.fields, "cache-control")
        return !asked.fields.contains("authorization") || control.contains("public")
            || control.contains("must-revalidate") || control.contains { $0.hasPrefix("s-maxage") }
    }

    static func selects(_ asked: RequestHead, _ answer: ResponseHead, _ next: RequestHead) -> Bool {
        func wanted(_ request: RequestHead, _ name: String) -> [String] {
            var members = words(request.fields, name).map { $0.filter { $0 != " " } }
            if name == "accept-encoding" {
                members = Set(members.map { $0.hasSuffix(";q=1") ? String($0.dropLast(4)) : $0 }).sorted()
            }
            return members
        }
        let names = words(answer.fields, "vary")
        return !names.contains("*")
            && names.allSatisfy { name in
                asked.fields.contains(name) == next.fields.contains(name) && wanted(asked, name) == wanted(next, name)
            }
    }

    /// The longest that the response may be fresh, in seconds, where neither max-age nor s-maxage says it.
    static func longest(_ answer: ResponseHead, ttl: Int64?) -> Int64 {
        func dates(_ name: String) -> [Int64] {
            answer.fields.all(name).compactMap { HTTPDate.parse($0, now: arrival) }
        }
        let came =
            dates("date")
            + (answer.fields.all("date").allSatisfy { HTTPDate.parse($0, now: 0) != nil } ? [] : [arrival])
        guard let first = came.min(), let last = came.max() else { return 0 }
        if answer.fields.contains("expires") { return (dates("expires").max() ?? first) - first }
        // The configured one, or a tenth of the time since the last modification.
        return max(ttl ?? 0, dates("last-modified").min().map { (last - $0) / 10 } ?? 0)
    }

    static func mayReuse(
        _ asked: RequestHead,
        _ answer: ResponseHead,
        _ next: RequestHead,
        after: Int64,
        ttl: Int64?
    ) -> Bool {
        let control = words(answer.fields, "cache-control")
        let wish = words(next.fields, "cache-control")
        if control.contains("no-cache") || wish.contains("no-cache") { return false }
        if next.method != .get && next.method != .head { return false }
        if !selects(asked, answer, next) { return false }
        let age = (words(answer.fields, "age").first.flatMap { Int64($0) } ?? 0) + max(after, 0)
        if let limit = seconds(wish, "max-age"), age > limit, !control.contains("immutable") { return false }
        if control.contains(where: { $0.hasPrefix("max-age=-") || $0 == "max-age=x" || $0 == "max-age" }) {
            return false
        }
        let lifetime = seconds(control, "s-maxage") ?? seconds(control, "max-age") ?? longest(answer, ttl: ttl)
        if let wanted = seconds(wish, "min-fresh"), lifetime - age < wanted { return false }
        return age < lifetime
            && !(answer.fields.all("expires").contains("0") && !control.contains { $0.contains("age=") })
    }

    static func forbidsStale(_ answer: ResponseHead) -> Bool {
        let control = words(answer.fields, "cache-control")
        return control.contains {
            ["must-revalidate", "proxy-revalidate", "no-cache"].contains($0) || $0.hasPrefix("s-maxage=")
        }
    }
}
