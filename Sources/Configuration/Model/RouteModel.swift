// What services and endpoints both say of their requests and answers.

package import Content
package import HTTPCaching
package import Policies
package import Upstream

/// The settings of a route: of an endpoint, with what it inherited, or of the requests that no endpoint of a service names.
@dynamicMemberLookup
package struct RouteSettings: Sendable, Equatable {
    /// What is obeyed as it is.
    package var policies: RoutePolicies
    package var headers = HeaderRules()
    /// Query items that are added where the request does not bring the name itself, in the order of the file.
    package var query: [QueryRule] = []
    /// The deadlines of one fetch. None of them runs while the client holds back. Default: 5 s to connect, 30 s to the
    /// head, 120 s without a byte, and no limit in total.
    package var timeout: Timeouts
    package var cache = CacheConfiguration()
    /// What bodies must be to be stored.
    package var expect: ContentExpectation
    /// The media types that answers may have; nil: any.
    package var types: ExpectedTypes?
    /// The statuses that are successes; nil: those below 400.
    package var success: StatusSet?
    package var mapping: MappingConfiguration?
    /// Of failed answers.
    package var errorMapping: MappingConfiguration?
    package var recording = RecordingConfiguration()
    /// Of a service: the answer for paths that no endpoint names, and the defaults of the endpoints.
    package var demo = DemoConfiguration()
    /// What goes wrong on purpose, in order.
    package var faults: [FaultPolicy] = []

    package subscript<Value>(dynamicMember path: WritableKeyPath<RoutePolicies, Value>) -> Value {
        get { policies[keyPath: path] }
        set { policies[keyPath: path] = newValue }
    }
}

extension ServiceConfiguration {
    package subscript<Value>(dynamicMember path: WritableKeyPath<RouteSettings, Value>) -> Value {
        get { settings[keyPath: path] }
        set { settings[keyPath: path] = newValue }
    }
}

extension EndpointConfiguration {
    package subscript<Value>(dynamicMember path: WritableKeyPath<RouteSettings, Value>) -> Value {
        get { settings[keyPath: path] }
        set { settings[keyPath: path] = newValue }
    }
}
