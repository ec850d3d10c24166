// Why no service answers a request, as a value; the server makes a document of it for the client.

package import DemoMode
package import DownloadCore
package import HTTPWire

/// A refusal of the router, or of a service client, before anything was asked of a store or of an origin; or while a
/// demo answer was waited for.
package indirect enum RouteRefusal: Error, Sendable, Equatable {
    /// TRACE and its kind: an origin would send back the credentials that were added to the request.
    case loopBack(Method)
    /// The request has been here before, or its target is this daemon.
    case loop
    /// The client expects something besides `100-continue` (RFC 9110 section 10.1.1).
    case expectation
    /// No service answers for the host (RFC 9110 section 7.4). `service` is the one that the path leads to, if there is
    /// one.
    case host(Authority, service: String?)
    /// No service is mounted at the target.
    case noService(target: String)
    /// The service answers only what its endpoints name.
    /// - Parameters:
    ///   - request: its method and path.
    ///   - nearest: the endpoints that come the closest, and what they have instead.
    case noEndpoint(request: String, service: String, nearest: [String])
    /// The path could leave what the service answers for (RFC 3986 section 3.3).
    case dotSegments(service: String)
    /// The service adds credentials, and a page of another web origin asks; nil where it loads a
    /// script, an image or a frame.
    case foreignPage(service: String, origin: String?)
    /// The access rules of the service refuse the request.
    /// - Parameter rule: the one under `deny`, or `allow` where none of those under it matches.
    case denied(service: String, rule: String)
    /// The request cannot be made into the one that its endpoint sends.
    case request(RequestFault, service: String, endpoint: String)
    /// The service has no base URL, and no demo answer for the request.
    case noAnswer(service: String)
    /// No rule of its demo mode answers the request.
    /// - Parameters:
    ///   - name: of the endpoint, or of the service itself.
    ///   - nearest: the rules that came the closest, the closest first.
    case noDemoRule(_ name: String, service: String, nearest: [DemoNearMiss])
    /// What the request asks of its demo answer cannot be.
    /// - Parameter problem: what is wrong, and what to write instead.
    case badOverride(_ problem: String, service: String)
    /// The request is none that the service's document describes.
    /// - Parameter problems: what is wrong, and where.
    case undescribed(_ problems: String, service: String)
    /// Forward mode is off.
    case forwardOff
    /// Forward mode knows http and https.
    case scheme(String)
    /// An https URL in absolute form has come over the network in the clear.
    case secureFromAfar
    /// No rule of forward mode allows the target.
    case target(String)
    /// `max_concurrent` and its queue had no room for a tunnel.
    case notAdmitted(FetchError)
    /// The client left while its answer was waited for.
    case clientLeft
}
