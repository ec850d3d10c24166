// What a request has to pass before it is answered: the document that describes it, and the quota of such requests.

import Content
import DownloadCore
import EventLoop
import HTTPWire
import Matching
import Policies
import ServiceCore
import Upstream

/// Examines the request of one exchange, and says what was found.
enum RequestInspection {
    /// The field in answers to requests that are not right.
    private static let fieldName = "Drydock-OpenAPI"
    /// The most characters that a field and a log line show of all that is wrong.
    private static let longest = 1000

    /// - Parameters:
    ///   - body: can be read from its beginning afterwards.
    ///   - bind: registers whom to call when the body has bytes again.
    ///   - added: fields of the answer, which say what is wrong.
    /// - Returns: that the client did not send all of the request; nil: it is to be answered.
    /// - Throws: the refusal of a request that is not right.
    static func examine(
        _ match: RouteMatch,
        _ body: inout (any RequestBodySource)?,
        bind: ((_ available: @escaping () -> Void) -> Void)?,
        _ added: inout Fields,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async throws(RouteRefusal) -> FetchError? {
        guard let examination = match.route.plan.examination else { return nil }
        var (parts, problems) = (
            RequestParts(method: match.request.method.name, target: match.rest, fields: match.request.fields),
            [String]()
        )
        if examination.examiner.needsContent(method: parts.method, path: parts.path) {
            do throws(FetchError) {
                let limit = examination.contentLimit
                let content = try await PostedContent.read(body, bind: bind, atMost: limit, on: loop)
                if let source = body { body = content.again(then: source) }
                (parts.body, problems) = decoded(content, parts.fields, atMost: limit)
            } catch {
                return error
            }
        }
        problems += examination.examiner.problems(parts)
        guard !problems.isEmpty else { return nil }
        exchange.context.counters.add(.undescribedRequests)
        let text = problems.joined(separator: "; ")
        let shown = text.utf8.count > longest ? String(text.prefix(longest)) + "…" : text
        exchange.tell(.undescribed, shown)
        exchange.draft?.violations = shown
        guard !examination.refuses else { throw .undescribed(shown, service: match.route.label) }
        // A field has one line of ASCII.
        added.append(fieldName, "violations=\(problems.count); first=\(StructuredText.string(problems[0]))")
        return nil
    }

    /// A content without its codings.
    /// - Returns: it is unread, with what is wrong, where its codings cannot be taken off.
    private static func decoded(
        _ content: PostedContent,
        _ fields: Fields,
        atMost limit: Int
    ) -> (RequestParts.Body, [String]) {
        guard content.isWhole, content.bytes.count <= limit else { return (.tooLong, []) }
        guard let codings = ContentCoding.codings(fields) else {
            return (.unread, ["header.Content-Encoding names a coding that is not known here; use gzip, deflate or br"])
        }
        guard !codings.isEmpty, !content.bytes.isEmpty else { return (.whole(WholeBody(content.bytes)), []) }
        let decoder = ContentDecoder(codings)
        var bytes: [UInt8] = []
        let damaged = "body does not have the coding that Content-Encoding names"
        do {
            try content.bytes.withUnsafeBytes { coded in
                try decoder.push(coded) { piece in
                    bytes.append(contentsOf: piece)
                    return bytes.count <= limit
                }
            }
        } catch {
            return (.unread, [damaged])
        }
        if bytes.count > limit { return (.tooLong, []) }
        return decoder.isAtEnd ? (.whole(WholeBody(bytes)), []) : (.unread, [damaged])
    }
}

// MARK: - Quotas

/// The quota that applies to one request.
struct RequestQuota {
    private let match: RouteMatch
    private let exchange: Exchange
    private let clock: WallClock

    init(_ match: RouteMatch, _ exchange: Exchange, _ clock: WallClock) {
        self.match = match
        self.exchange = exchange
        self.clock = clock
    }

    /// Counts the request if the quota is for such requests.
    /// - Parameters:
    ///   - counted: the kind of request that the quota may count.
    ///   - added: the fields that every answer gets; the state of the quota is appended.
    /// - Throws: the answer to a request beyond the limit.
    func take(_ counted: RateLimitPolicy.Counted, _ added: inout Fields) throws(Problem) {
        guard let policy = match.endpoint.request.policies.rateLimit, policy.count == counted else { return }
        let name = policy.scope.isEmpty ? match.route.label : policy.scope
        let client = exchange.client.name
        let runtime = match.route.runtime
        let verdict = runtime.rates.take(policy, scope: name, client: client, now: clock.now())
        let seconds = policy.window / 1_000_000_000
        // The fields are those of draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
        added.append("RateLimit-Policy", "\"\(name)\";q=\(policy.limit);w=\(seconds)")
        added.append("RateLimit", "\"\(name)\";r=\(verdict.left);t=\(verdict.reset)")
        guard verdict.isOver else { return }
        if verdict.isNews {
            runtime.resilience.tell(.cameEarly(client: client, quota: name, wait: verdict.reset))
        }
        exchange.outcome.fault = "rate_limit"
        var fields = added
        fields.append(.retryAfter, String(verdict.reset))
        throw Problem(
            status: policy.status,
            title: "Too many requests",
            detail: "\(policy.limit) requests in \(seconds) s are answered here; come back in \(verdict.reset) s",
            fields: fields
        )
    }
}
