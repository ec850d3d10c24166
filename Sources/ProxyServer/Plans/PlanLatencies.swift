// Which latencies of origins a configuration wants to be learned, and who learns them.

package import Configuration
import Policies
import ServiceCore

extension Configuration {
    /// The services and endpoints whose origins some latency is learned of, whether it is in force or not, so that demo
    /// mode finds it when it is switched on.
    package var learnedPlaces: Set<String> {
        var places: Set<String> = []
        func add(_ demo: DemoConfiguration?, _ faults: [FaultPolicy], at place: String) {
            let answers = demo.map { $0.rules + [$0.answer] } ?? []
            for policy in answers.map(\.latency) + faults.compactMap(\.latency) {
                if case .learned(let learned) = policy.shape { places.insert(learned.source ?? place) }
            }
        }
        add(nil, forward.faults, at: Self.forwardName)
        for service in services {
            add(service.demo, service.faults, at: service.name)
            for endpoint in service.endpoints {
                add(endpoint.demo, endpoint.faults, at: RoutePlan.place(service.name, endpoint.name))
            }
        }
        return places
    }
}

extension RoutePlan {
    /// What learned latencies call an endpoint.
    package static func place(_ service: String, _ endpoint: String) -> String { "\(service)/\(endpoint)" }

    /// Those who learn from what is fetched for a route.
    static func learners(_ place: RoutePlace, _ latencies: LearnedLatencies) -> [LearnedLatency] {
        let names = [place.service] + (place.endpoint == nil ? [] : [place.name])
        return names.filter(place.learned.contains).map(latencies.latency)
    }
}
