// One call of a service: the request with its way, its body and whom to tell, and what becomes of it.

package import CacheStore
package import DemoMode
package import DownloadCore
package import HTTPCaching
package import HTTPWire
package import Matching
package import Policies
package import Upstream

/// A request with the service that it is for. Loop-bound, because its body is. A value in one reference, so that each
/// function that waits for its answer has that alone in its frame.
package struct ServiceCall {
    private struct Members {
        var match: RouteMatch
        var head: RequestHead
        var originFields: Fields
        var framing: BodyFraming
        var body: (any RequestBodySource)?
        var bindBody: ((_ available: @escaping () -> Void) -> Void)?
        var onInterim: ((ResponseHead) -> Void)?
        var endWithClient: (() -> Void)?
        var whenEnding: ((_ end: @escaping () -> Void) -> Void)?
        var trace: RequestTrace?
        var gate: FaultGate?
        var parkable: ParkableCall?
        var filledRest: String?
        var urgency: FetchUrgency?
        var depth = 0
        var hidden: [HiddenItem] = []
    }

    private final class Box {
        // Unchecked: no code runs while a member is changed, and a check would cost instructions with every use.
        @exclusivity(unchecked) var members: Members

        init(_ members: Members) { self.members = members }
    }

    private var box: Box

    private var members: Members {
        get { box.members }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.members) }
            yield &box.members
        }
    }

    package internal(set) var match: RouteMatch {
        get { box.members.match }
        set { members.match = newValue }
    }
    /// The client's request without the fields of its connection.
    package internal(set) var head: RequestHead {
        get { box.members.head }
        _modify { yield &members.head }
    }
    /// Fields for the origin: end-to-end, Via added.
    package var originFields: Fields {
        get { box.members.originFields }
        _modify { yield &members.originFields }
    }
    package internal(set) var framing: BodyFraming {
        get { box.members.framing }
        set { members.framing = newValue }
    }
    package var body: (any RequestBodySource)? {
        get { box.members.body }
        _modify { yield &members.body }
    }
    /// Registers whom to call when the body has bytes again.
    package var bindBody: ((_ available: @escaping () -> Void) -> Void)? {
        get { box.members.bindBody }
        set { members.bindBody = newValue }
    }
    package var onInterim: ((ResponseHead) -> Void)? {
        get { box.members.onInterim }
        set { members.onInterim = newValue }
    }
    /// Makes the client's leaving the end of the request.
    package var endWithClient: (() -> Void)? {
        get { box.members.endWithClient }
        set { members.endWithClient = newValue }
    }
    /// Registers whom to call when the daemon begins to end, for an answer that does not end by itself.
    package var whenEnding: ((_ end: @escaping () -> Void) -> Void)? {
        get { box.members.whenEnding }
        set { members.whenEnding = newValue }
    }
    /// Tells what becomes of the request; nil unless that is wanted.
    package var trace: RequestTrace? {
        get { box.members.trace }
        set { members.trace = newValue }
    }
    /// Faults that may keep the origin from being asked; nil: there are none.
    package var gate: FaultGate? {
        get { box.members.gate }
        set { members.gate = newValue }
    }
    /// Tells of its fetches as one call; nil unless it may be parked between them.
    var parkable: ParkableCall? {
        get { box.members.parkable }
        set { members.parkable = newValue }
    }
    /// What the endpoint asks for below the base URL, where that was made of the content, too; nil: it is yet to be
    /// filled.
    var filledRest: String? {
        get { box.members.filledRest }
        set { members.filledRest = newValue }
    }
    /// How urgent it is; nil where a client waits for the answer.
    package var urgency: FetchUrgency? {
        get { box.members.urgency }
        set { members.urgency = newValue }
    }
    /// Services asked for this request so far.
    var depth: Int {
        get { box.members.depth }
        set { members.depth = newValue }
    }
    /// What those services add to the query where the request goes out.
    var hidden: [HiddenItem] {
        get { box.members.hidden }
        set { members.hidden = newValue }
    }

    /// - Parameter via: the entry of this daemon in Via.
    package init(_ match: RouteMatch, _ framing: BodyFraming, via: String) {
        let head = OutgoingRequest.endToEnd(match.request)
        let hasBody = framing != .none && framing != .length(0)
        let fields = OutgoingRequest.fields(head, hasBody: hasBody, via: via)
        box = Box(Members(match: match, head: head, originFields: fields, framing: framing))
    }

    /// A call of a service by another one.
    init(_ match: RouteMatch, _ request: FetchRequest, _ fields: Fields, depth: Int, hidden: [HiddenItem]) {
        box = Box(
            Members(
                match: match,
                head: match.request,
                originFields: fields,
                framing: request.framing,
                body: request.body,
                bindBody: request.bindBody,
                urgency: request.urgency,
                depth: depth,
                hidden: hidden
            )
        )
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

/// The answer of a service. What few answers have is in one reference: each function that waits for an answer has a place
/// for it in its frame.
package struct ServiceAnswer {
    private struct Members {
        var demo: String?
        var rung: AnswerRung?
        var faultDraws: FaultDraws?
        var faults: String?
        var errorDocument: [UInt8]?
    }

    private final class Box {
        // Unchecked: no code runs while a member is changed.
        @exclusivity(unchecked) var members: Members

        init(_ members: Members) { self.members = members }
    }

    package var answer: Answer
    /// Nil where each of them is.
    private var more: Box?

    private var members: Members {
        get { more?.members ?? Members() }
        set { more = Box(newValue) }
    }

    /// The value of Drydock-Demo; nil for what is no demo answer.
    package var demo: String? {
        get { more?.members.demo }
        set { if newValue != nil || more != nil { members.demo = newValue } }
    }
    /// The rung that has answered; nil where the route names none.
    package var rung: AnswerRung? {
        get { more?.members.rung }
        set { if newValue != nil || more != nil { members.rung = newValue } }
    }
    /// What the request of a demo answer has drawn of its faults; nil: they are drawn for the answer.
    package var faultDraws: FaultDraws? {
        get { more?.members.faultDraws }
        set { if newValue != nil || more != nil { members.faultDraws = newValue } }
    }
    /// What Drydock-Demo says of faults; nil where none acts.
    package var faults: String? {
        get { more?.members.faults }
        set { if newValue != nil || more != nil { members.faults = newValue } }
    }
    /// The document of an answer that is a failure, as `error.map` makes it; nil: a problem document says what failed.
    package var errorDocument: [UInt8]? {
        get { more?.members.errorDocument }
        set { if newValue != nil || more != nil { members.errorDocument = newValue } }
    }

    package init(answer: Answer, demo: String? = nil) {
        self.answer = answer
        if demo != nil { more = Box(Members(demo: demo)) }
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
