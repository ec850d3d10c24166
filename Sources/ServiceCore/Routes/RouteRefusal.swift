// The reasons why no service answers a request; the server makes a document of them for the client.

package import DemoMode
package import DownloadCore
package import HTTPWire

/// A refusal by the router or a service client, before a store or an origin is asked, or while a demo answer waits.
package indirect enum RouteRefusal: Error, Sendable, Equatable {
    /// The method is TRACE or TRACK: an origin would return the credentials that were added to the request.
    case loopBack(Method)
    /// The request has passed this daemon before, or its target is this daemon.
    case loop
    /// The client expects something other than `100-continue` (RFC 9110 section 10.1.1).
    case expectation
    /// No service answers for the host (RFC 9110 section 7.4). `service` is the service that the path leads to, if
    /// there is one.
    case host(Authority, service: String?)
    /// No service has the prefix of the target.
    case noService(target: String)
    /// The service answers only its endpoints, and none names the request.
    /// - Parameters:
    ///   - request: the method and the path.
    ///   - nearest: the most similar endpoints, with their differences.
    case noEndpoint(request: String, service: String, nearest: [String])
    /// The path could leave the paths of the service (RFC 3986 section 3.3).
    case dotSegments(service: String)
    /// The service adds credentials, and a page of another web origin asks; `origin` is nil if the page loads a script,
    /// an image or a frame.
    case foreignPage(service: String, origin: String?)
    /// The access rules of the service refuse the request.
    /// - Parameter rule: the rule under `deny`, or `allow` if none of the rules under it matches.
    case denied(service: String, rule: String)
    /// The endpoint cannot make its own request of this one.
    case request(RequestFault, service: String, endpoint: String)
    /// The service has no base URL, and no demo answer for the request.
    case noAnswer(service: String)
    /// No rule of demo mode answers the request.
    /// - Parameters:
    ///   - name: the name of the endpoint, or of the service itself.
    ///   - nearest: the most similar rules, the nearest first.
    case noDemoRule(_ name: String, service: String, nearest: [DemoNearMiss])
    /// The request asks its demo answer for something impossible.
    /// - Parameter problem: the mistake, with the correct form.
    case badOverride(_ problem: String, service: String)
    /// The service's document does not describe the request.
    /// - Parameter problems: the differences with their positions.
    case undescribed(_ problems: String, service: String)
    /// Forward mode is off.
    case forwardOff
    /// The scheme of the target is neither http nor https.
    case scheme(String)
    /// An https URL in absolute form was sent over the network without encryption.
    case secureFromAfar
    /// Inside of a tunnel, a request is for somebody else than the tunnel leads to, or TLS was (RFC 9110 section 7.4).
    /// - Parameter reason: what differs.
    case misdirected(_ reason: String)
    /// CONNECT inside of a tunnel that the daemon reads.
    case nestedTunnel
    /// No rule of forward mode allows the target.
    case target(String)
    /// `max_concurrent` and its queue have no room for a tunnel.
    case notAdmitted(FetchError)
    /// The client left during the wait for its answer.
    case clientLeft
}
