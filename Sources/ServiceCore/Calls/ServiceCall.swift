// One call of a service: the request with its route, its body and its callbacks, and the next step for it.

package import CacheStore
package import DemoMode
package import DownloadCore
package import HTTPCaching
package import HTTPWire
package import Matching
package import Policies
package import Upstream

/// A request with the service that it is for. Loop-bound, because its body is. A value in one reference, so that a
/// function that waits for the answer has only that in its frame.
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

    private var box: CopyOnWrite<Members>

    package internal(set) var match: RouteMatch {
        get { box.members.match }
        set { box.members.match = newValue }
    }
    /// The client's request without the fields of its connection.
    package internal(set) var head: RequestHead {
        get { box.members.head }
        _modify { yield &box.members.head }
    }
    /// The end-to-end fields for the origin, Via included.
    package var originFields: Fields {
        get { box.members.originFields }
        _modify { yield &box.members.originFields }
    }
    package internal(set) var framing: BodyFraming {
        get { box.members.framing }
        set { box.members.framing = newValue }
    }
    package var body: (any RequestBodySource)? {
        get { box.members.body }
        _modify { yield &box.members.body }
    }
    /// Registers a callback for more bytes of the body.
    package var bindBody: ((_ available: @escaping () -> Void) -> Void)? {
        get { box.members.bindBody }
        set { box.members.bindBody = newValue }
    }
    package var onInterim: ((ResponseHead) -> Void)? {
        get { box.members.onInterim }
        set { box.members.onInterim = newValue }
    }
    /// Makes the end of the client's side the end of the request.
    package var endWithClient: (() -> Void)? {
        get { box.members.endWithClient }
        set { box.members.endWithClient = newValue }
    }
    /// Registers a callback for the end of the daemon, for an answer that does not end by itself.
    package var whenEnding: ((_ end: @escaping () -> Void) -> Void)? {
        get { box.members.whenEnding }
        set { box.members.whenEnding = newValue }
    }
    /// The trace of the request; nil if it is neither logged nor made of spans.
    package var trace: RequestTrace? {
        get { box.members.trace }
        set { box.members.trace = newValue }
    }
    /// The faults that may keep the origin from being asked; nil for none.
    package var gate: FaultGate? {
        get { box.members.gate }
        set { box.members.gate = newValue }
    }
    /// The report of the call's fetches as one call; nil unless the call may be parked between them.
    var parkable: ParkableCall? {
        get { box.members.parkable }
        set { box.members.parkable = newValue }
    }
    /// The endpoint's target below the base URL, if it was filled from the content, too; nil if it is not filled yet.
    var filledRest: String? {
        get { box.members.filledRest }
        set { box.members.filledRest = newValue }
    }
    /// The urgency of the call; nil if a client waits for the answer.
    package var urgency: FetchUrgency? {
        get { box.members.urgency }
        set { box.members.urgency = newValue }
    }
    /// The number of services that were asked for this request so far.
    var depth: Int {
        get { box.members.depth }
        set { box.members.depth = newValue }
    }
    /// The secret query items of those services, which are added to the request for the origin.
    var hidden: [HiddenItem] {
        get { box.members.hidden }
        set { box.members.hidden = newValue }
    }

    /// Makes a call for a client's request.
    /// - Parameter via: this daemon's entry in Via.
    package init(_ match: RouteMatch, _ framing: BodyFraming, via: String) {
        let head = OutgoingRequest.endToEnd(match.request)
        let hasBody = framing != .none && framing != .length(0)
        let fields = OutgoingRequest.fields(head, hasBody: hasBody, via: via)
        box = CopyOnWrite(Members(match: match, head: head, originFields: fields, framing: framing))
    }

    /// Makes a call of a service by another one.
    init(_ match: RouteMatch, _ request: FetchRequest, _ fields: Fields, depth: Int, hidden: [HiddenItem]) {
        box = CopyOnWrite(
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

    /// The key of a GET of the same target.
    package var key: CacheKey {
        guard match.route.isForward else {
            return match.route.key(rest: match.rest, host: head.fields.first(.host), on: match.origin)
        }
        return match.route.key(path: match.rest, head.fields, match.endpoint, on: match.origin)
    }

    /// The bytes that identify demo requests: method, a space, the target without the prefix.
    package var demoKey: [UInt8] { Self.demoKey(head.method, match.rest) }

    static func demoKey(_ method: HTTPWire.Method, _ rest: String) -> [UInt8] { Array("\(method.name) \(rest)".utf8) }

    /// The request for the rules of demo mode, without its body.
    package var demoParts: RequestParts { Self.demoParts(match, head) }

    /// The request for the rules of demo mode, without its body.
    /// - Parameter head: the request without the fields of the client's connection.
    package static func demoParts(_ match: RouteMatch, _ head: RequestHead) -> RequestParts {
        let parameters = match.endpoint.endpoint.map { TargetParts(match.rest, $0.pattern).path } ?? [:]
        return RequestParts(method: head.method.name, target: match.rest, fields: head.fields, parameters: parameters)
    }

    /// Whether the request has no content.
    package var isPlain: Bool { framing == .none || framing == .length(0) }

    /// The endpoint's target below the base URL.
    func target() throws(RouteRefusal) -> String {
        if let filledRest { return filledRest }
        return match.endpoint.isShaped ? try match.route.fill(match.rest, match.endpoint).rest : match.rest
    }

    /// Applies the route's policy for clients that leave.
    func heed(_ ask: CacheRequest) {
        if ask.onClientAbort != .finish { endWithClient?() }
    }

    /// Called when the origin is to be asked; returns the status of an answer without the origin, or nil.
    var instead: ((_ isStored: Bool) -> Int?)? {
        guard let gate, !match.endpoint.request.asksNobody else { return nil }
        return { gate.standIn(isStored: $0) }
    }

    /// The text in front of the path of a request to the source.
    var asked: String { match.origin?.root ?? "service:\(match.route.inner ?? "")" }
}

/// The next step for a call.
package enum ServiceStep {
    case demo(DemoPlan)
    /// The sources that the route names are asked one after the other.
    case order(SourceOrder<EndpointRoute>)
    /// A GET or HEAD is answered from the store, or through it from the source.
    case store(CacheRequest, any FetchSource)
    /// A POST whose answer may be stored is answered by its content, which has to be read.
    case post(CacheRequest, any FetchSource)
    /// A request with another method, or with a body, is forwarded to the path at the source.
    case pass(path: String, any FetchSource)
}

/// The answer of a service. Members that few answers have are in one reference, because each function that waits for an
/// answer has room for them in its frame.
package struct ServiceAnswer {
    private struct Members {
        var demo: String?
        var source: OrderedSource?
        var faultDraws: FaultDraws?
        var faults: String?
        var errorDocument: [UInt8]?
    }

    private final class Box {
        // The member is unchecked: no code runs while it is changed.
        @exclusivity(unchecked) var members: Members

        init(_ members: Members) { self.members = members }
    }

    package var answer: Answer
    /// The rare members; nil if all of them are nil.
    private var more: Box?

    private var members: Members {
        get { more?.members ?? Members() }
        set { more = Box(newValue) }
    }

    /// The value of Drydock-Demo; nil for an answer of another kind.
    package var demo: String? {
        get { more?.members.demo }
        set { if newValue != nil || more != nil { members.demo = newValue } }
    }
    /// The source that has answered; nil where the route names none.
    package var source: OrderedSource? {
        get { more?.members.source }
        set { if newValue != nil || more != nil { members.source = newValue } }
    }
    /// The faults that the request of a demo answer has drawn; nil if they are drawn for the answer.
    package var faultDraws: FaultDraws? {
        get { more?.members.faultDraws }
        set { if newValue != nil || more != nil { members.faultDraws = newValue } }
    }
    /// The part of Drydock-Demo about faults; nil if none acts.
    package var faults: String? {
        get { more?.members.faults }
        set { if newValue != nil || more != nil { members.faults = newValue } }
    }
    /// The document of a failure, as `error.map` makes it; nil for a problem document.
    package var errorDocument: [UInt8]? {
        get { more?.members.errorDocument }
        set { if newValue != nil || more != nil { members.errorDocument = newValue } }
    }

    package init(answer: Answer, demo: String? = nil) {
        self.answer = answer
        if demo != nil { more = Box(Members(demo: demo)) }
    }

    /// The members of Drydock-Demo; nil if nothing was drawn.
    package var draws: String? {
        demo == nil && faults == nil ? nil : [demo, faults].compactMap(\.self).joined(separator: ", ")
    }

    /// What Cache-Status says: `detail` is the source, where the route names sources.
    package var cacheStatus: CacheStatus? {
        guard let source else { return answer.cacheStatus }
        var status = answer.cacheStatus
        status?.detail = source.rawValue
        return status
    }
}

extension CallDestination {
    /// Makes the source of the route's requests.
    /// - Parameter root: the text in front of the path of a request.
    convenience init(_ route: ServiceRoute, _ endpoint: EndpointRoute, asks root: String) {
        self.init(service: route.label, endpoint: endpoint.name, root: root, secrets: route.rewriting.secrets)
    }
}
