// One call of a service: the request with its way, its body and whom to tell, and what becomes of it.

package import CacheStore
package import DemoMode
package import DownloadCore
package import HTTPCaching
package import HTTPWire
package import Matching
package import Policies
package import Upstream

/// A request with the service that it is for. Loop-bound, because its body is.
package struct ServiceCall {
    package internal(set) var match: RouteMatch
    /// The client's request without the fields of its connection.
    package internal(set) var head: RequestHead
    /// Fields for the origin: end-to-end, Via added.
    package var originFields: Fields
    package internal(set) var framing: BodyFraming
    package var body: (any RequestBodySource)?
    /// Registers whom to call when the body has bytes again.
    package var bindBody: ((_ available: @escaping () -> Void) -> Void)?
    package var onInterim: ((ResponseHead) -> Void)?
    /// Makes the client's leaving the end of the request.
    package var endWithClient: (() -> Void)?
    /// Registers whom to call when the daemon begins to end, for an answer that does not end by itself.
    package var whenEnding: ((_ end: @escaping () -> Void) -> Void)?
    /// Tells what becomes of the request; nil unless that is wanted.
    package var trace: RequestTrace?
    /// Faults that may keep the origin from being asked; nil: there are none.
    package var gate: FaultGate?
    /// Tells of its fetches as one call; nil unless it may be parked between them.
    var parkable: ParkableCall?
    /// What the endpoint asks for below the base URL, where that was made of the content, too; nil: it is yet to be
    /// filled.
    var filledRest: String?
    /// How urgent it is; nil where a client waits for the answer.
    package var urgency: FetchUrgency?
    /// Services asked for this request so far.
    var depth = 0
    /// What those services add to the query where the request goes out.
    var hidden: [HiddenItem] = []

    /// - Parameter via: the entry of this daemon in Via.
    package init(_ match: RouteMatch, _ framing: BodyFraming, via: String) {
        self.match = match
        self.framing = framing
        head = OutgoingRequest.endToEnd(match.request)
        originFields = OutgoingRequest.fields(head, hasBody: framing != .none && framing != .length(0), via: via)
    }

    /// A call of a service by another one.
    init(_ match: RouteMatch, _ request: FetchRequest, _ fields: Fields, depth: Int, hidden: [HiddenItem]) {
        self.match = match
        head = match.request
        originFields = fields
        framing = request.framing
        body = request.body
        bindBody = request.bindBody
        urgency = request.urgency
        self.depth = depth
        self.hidden = hidden
    }

    /// The key that a GET of the same target is stored under.
    package var key: CacheKey {
        guard match.route.asksTarget else { return match.route.key(rest: match.rest, host: head.fields.first(.host)) }
        return match.route.key(path: match.rest, head.fields, match.endpoint, on: match.origin)
    }

    /// The bytes that tell demo requests apart: method, a space, the target behind the prefix.
    package var demoKey: [UInt8] { Self.demoKey(head.method, match.rest) }

    static func demoKey(_ method: HTTPWire.Method, _ rest: String) -> [UInt8] { Array("\(method.name) \(rest)".utf8) }

    /// The request as the rules of demo mode see it, but for its body.
    package var demoParts: RequestParts { Self.demoParts(match, head) }

    /// - Parameter head: without the fields of the client's connection.
    package static func demoParts(_ match: RouteMatch, _ head: RequestHead) -> RequestParts {
        let parameters = match.endpoint.endpoint.map { TargetParts(match.rest, $0.pattern).path } ?? [:]
        return RequestParts(method: head.method.name, target: match.rest, fields: head.fields, parameters: parameters)
    }

    /// There is no content.
    package var isPlain: Bool { framing == .none || framing == .length(0) }

    /// What the endpoint asks for below the base URL.
    func target() throws(RouteRefusal) -> String {
        if let filledRest { return filledRest }
        return match.endpoint.isShaped ? try match.route.fill(match.rest, match.endpoint).rest : match.rest
    }

    /// Obeys what the route says of clients that leave.
    func heed(_ ask: CacheRequest) {
        if ask.onClientAbort != .finish { endWithClient?() }
    }

    /// Asked when the origin is to be; what it gives is the status of an answer that comes without the origin.
    var instead: ((_ isStored: Bool) -> Int?)? {
        guard let gate, !match.endpoint.request.asksNobody else { return nil }
        return { gate.standIn(isStored: $0) }
    }

    /// The source that the call is answered from, which tells what it is asked where that is wanted.
    func traced(_ source: any FetchSource) -> any FetchSource {
        guard let trace else { return source }
        let proxy = match.origin.flatMap { match.route.plan.proxies.proxy(to: $0) }
        return TracedSource(source, trace, asked, through: proxy?.place)
    }

    /// What stands before the path of what its source is asked.
    var asked: String { match.origin?.root ?? "service:\(match.route.inner ?? "")" }
}

/// What becomes of a call.
package enum ServiceStep {
    case demo(DemoPlan)
    /// The places that the route names are asked one after the other.
    case ladder(Ladder<EndpointRoute>)
    /// A GET or HEAD: from the store, or from the source through it.
    case store(CacheRequest, any FetchSource)
    /// A POST whose answer may be stored, by its content, which is yet to be read.
    case post(CacheRequest, any FetchSource)
    /// Any other method, or a request with a body: on to the path at the source.
    case pass(path: String, any FetchSource)
}

/// The answer of a service.
package struct ServiceAnswer {
    package var answer: Answer
    /// The value of Drydock-Demo; nil for what is no demo answer.
    package var demo: String?
    /// The rung that has answered; nil where the route names none.
    package var rung: AnswerRung?
    /// What the request of a demo answer has drawn of its faults; nil: they are drawn for the answer.
    package var faultDraws: FaultDraws?
    /// What Drydock-Demo says of faults; nil where none acts.
    package var faults: String?
    /// The document of an answer that is a failure, as `error.map` makes it; nil: a problem document says what failed.
    package var errorDocument: [UInt8]?

    package init(answer: Answer, demo: String? = nil) {
        self.answer = answer
        self.demo = demo
    }

    /// The members of Drydock-Demo; nil where nothing was drawn.
    package var draws: String? {
        demo == nil && faults == nil ? nil : [demo, faults].compactMap(\.self).joined(separator: ", ")
    }

    /// What Cache-Status says: `detail` is the rung, where the route names rungs.
    package var cacheStatus: CacheStatus? {
        guard let rung else { return answer.cacheStatus }
        var status = answer.cacheStatus
        status?.detail = rung.rawValue
        return status
    }
}

extension CallPlace {
    /// - Parameter root: what stands before the path of what the origin is asked.
    convenience init(_ route: ServiceRoute, _ endpoint: EndpointRoute, asks root: String) {
        self.init(service: route.label, endpoint: endpoint.name, root: root, secrets: route.rewriting.secrets)
    }
}
