package engines;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import java.util.function.Supplier;

import org.elasticsearch.Build;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.action.ActionRunnable;
import org.elasticsearch.action.bulk.BulkItemResponse;
import org.elasticsearch.action.bulk.BulkRequest;
import org.elasticsearch.action.delete.DeleteRequest;
import org.elasticsearch.action.search.ClearScrollRequest;
import org.elasticsearch.action.search.SearchRequest;
import org.elasticsearch.action.search.SearchResponse;
import org.elasticsearch.action.search.SearchScrollRequest;
import org.elasticsearch.action.search.ShardSearchFailure;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.metadata.IndexNameExpressionResolver;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.common.bytes.BytesReference;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.IndexScopedSettings;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.settings.SettingsFilter;
import org.elasticsearch.core.TimeValue;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestController;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.rest.action.RestBuilderListener;
import org.elasticsearch.rest.action.search.RestSearchAction;
import org.elasticsearch.search.SearchHit;
import org.elasticsearch.xcontent.XContentBuilder;
import org.elasticsearch.xcontent.XContentFactory;
import org.elasticsearch.xcontent.XContentParser;
import org.elasticsearch.xcontent.XContentType;

/**
 * What the distribution adds to the server's jar by modules that no registry has, as far as this project calls it:
 * "GET /" and "POST /{index}/_delete_by_query", with answers of the same form.
 */
public final class MissingModules extends Plugin implements ActionPlugin {
    private ClusterService cluster;

    @Override
    public Collection<?> createComponents(PluginServices services) {
        cluster = services.clusterService();
        return List.of();
    }

    @Override
    public Collection<RestHandler> getRestHandlers(
        Settings settings,
        NamedWriteableRegistry writeables,
        RestController controller,
        ClusterSettings clusterSettings,
        IndexScopedSettings indexSettings,
        SettingsFilter filter,
        IndexNameExpressionResolver names,
        Supplier<DiscoveryNodes> nodes,
        Predicate<NodeFeature> features
    ) {
        return List.of(new Root(cluster), new DeleteByQuery(features));
    }

    /** Who answers here, and in which version: clients look at it before they trust a server. */
    private static final class Root extends BaseRestHandler {
        private final ClusterService cluster;

        Root(ClusterService cluster) {
            this.cluster = cluster;
        }

        @Override
        public String getName() {
            return "root";
        }

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.GET, "/"), new Route(RestRequest.Method.HEAD, "/"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
            return channel -> channel.sendResponse(new RestResponse(RestStatus.OK, channel.newBuilder().map(Map.of(
                "name", cluster.getNodeName(),
                "cluster_name", cluster.getClusterName().value(),
                "cluster_uuid", cluster.state().metadata().clusterUUID(),
                "version", Map.of(
                    "number", Build.current().version(),
                    "build_flavor", Build.current().flavor(),
                    "build_type", Build.current().type().displayName(),
                    "minimum_wire_compatibility_version", Build.current().minWireCompatVersion()),
                "tagline", "You Know, for Search"))));
        }
    }

    /** Deletes what a query finds, and waits for it. `slices` and `requests_per_second` say how fast, and are ignored. */
    private static final class DeleteByQuery extends BaseRestHandler {
        private final Predicate<NodeFeature> features;

        DeleteByQuery(Predicate<NodeFeature> features) {
            this.features = features;
        }

        @Override
        public String getName() {
            return "delete_by_query";
        }

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.POST, "/{index}/_delete_by_query"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) throws IOException {
            if (!request.paramAsBoolean("wait_for_completion", true)) {
                throw new IllegalArgumentException("this node deletes while the client waits, not later");
            }
            request.param("slices");
            request.param("requests_per_second");
            int page = request.paramAsInt("scroll_size", 1000);
            boolean refresh = request.paramAsBoolean("refresh", false);
            Map<String, Object> body = body(request);
            Object inBody = body.remove("conflicts");
            boolean proceed = "proceed".equals(request.param("conflicts", inBody == null ? "abort" : inBody.toString()));
            SearchRequest search = new SearchRequest();
            try (XContentParser parser = parser(request, body)) {
                RestSearchAction.parseSearchRequest(search, request, parser, features, size -> {});
            }
            if (search.source().query() == null) {
                throw new IllegalArgumentException("query is missing");
            }
            search.source().size(page).fetchSource(false).seqNoAndPrimaryTerm(true).sort("_doc");
            search.scroll(TimeValue.timeValueMinutes(1));
            Executor executor = client.threadPool().generic();
            return channel -> {
                ActionListener<Deletion> answer = new RestBuilderListener<>(channel) {
                    @Override
                    public RestResponse buildResponse(Deletion done, XContentBuilder builder) throws IOException {
                        return new RestResponse(done.status(), builder.map(done.answer()));
                    }
                };
                executor.execute(ActionRunnable.supply(answer, () -> new Deletion(client, proceed).run(search, refresh)));
            };
        }

        private static Map<String, Object> body(RestRequest request) throws IOException {
            try (XContentParser parser = request.contentParser()) {
                return parser.map();
            }
        }

        private static XContentParser parser(RestRequest request, Map<String, Object> body) throws IOException {
            try (XContentBuilder builder = XContentFactory.jsonBuilder().map(body)) {
                return XContentType.JSON.xContent()
                    .createParser(request.contentParserConfig(), BytesReference.bytes(builder).streamInput());
            }
        }
    }

    /** One call of _delete_by_query, page by page of a scroll; a document that changed meanwhile is a conflict. */
    private static final class Deletion {
        private final NodeClient client;
        private final boolean proceed;
        private final long begun = System.nanoTime();
        private final List<Map<String, Object>> failures = new ArrayList<>();
        private RestStatus worst = RestStatus.OK;
        private long total;
        private long deleted;
        private long conflicts;
        private long batches;

        Deletion(NodeClient client, boolean proceed) {
            this.client = client;
            this.proceed = proceed;
        }

        Deletion run(SearchRequest search, boolean refresh) throws IOException {
            SearchResponse page = client.search(search).actionGet();
            String scroll = page.getScrollId();
            try {
                total = page.getHits().getTotalHits().value;
                while (delete(page)) {
                    page.decRef();
                    page = client.searchScroll(new SearchScrollRequest(scroll).scroll(search.scroll())).actionGet();
                }
            } finally {
                page.decRef();
                ClearScrollRequest clear = new ClearScrollRequest();
                clear.addScrollId(scroll);
                client.clearScroll(clear).actionGet();
            }
            if (refresh) {
                client.admin().indices().prepareRefresh(search.indices()).setIndicesOptions(search.indicesOptions()).get();
            }
            return this;
        }

        /** Whether there may be more to delete. */
        private boolean delete(SearchResponse page) {
            for (ShardSearchFailure failure : page.getShardFailures()) {
                fail(failure.status(), Map.of("index", String.valueOf(failure.index()), "reason", failure.reason()));
            }
            BulkRequest bulk = new BulkRequest();
            for (SearchHit hit : page.getHits()) {
                DeleteRequest one = new DeleteRequest(hit.getIndex(), hit.getId());
                one.setIfSeqNo(hit.getSeqNo()).setIfPrimaryTerm(hit.getPrimaryTerm());
                if (hit.field("_routing") != null) {
                    one.routing(hit.field("_routing").getValue());
                }
                bulk.add(one);
            }
            if (worst != RestStatus.OK || bulk.numberOfActions() == 0) {
                return false;
            }
            batches++;
            client.bulk(bulk).actionGet().forEach(this::count);
            return worst == RestStatus.OK;
        }

        private void count(BulkItemResponse item) {
            if (!item.isFailed()) {
                deleted++;
                return;
            }
            boolean conflict = item.getFailure().getStatus() == RestStatus.CONFLICT;
            conflicts += conflict ? 1 : 0;
            if (!conflict || !proceed) {
                fail(item.getFailure().getStatus(), Map.of(
                    "index", item.getIndex(),
                    "id", item.getId(),
                    "status", item.getFailure().getStatus().getStatus(),
                    "cause", Map.of(
                        "type", item.getFailure().getCause().getClass().getSimpleName(),
                        "reason", item.getFailureMessage())));
            }
        }

        private void fail(RestStatus status, Map<String, Object> failure) {
            failures.add(failure);
            worst = status.getStatus() > worst.getStatus() ? status : worst;
        }

        RestStatus status() {
            return worst;
        }

        Map<String, Object> answer() {
            return Map.of(
                "took", (System.nanoTime() - begun) / 1_000_000,
                "timed_out", false,
                "total", total,
                "deleted", deleted,
                "batches", batches,
                "version_conflicts", conflicts,
                "noops", 0,
                "retries", Map.of("bulk", 0, "search", 0),
                "failures", failures);
        }
    }
}
