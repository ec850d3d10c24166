-- What wrk counted, exactly, as one line of JSON.

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '{"requests": %d, "bytes": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\n',
        summary.requests, summary.bytes, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout
    ))
end
