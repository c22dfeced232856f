import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;

/** One Elasticsearch node on 127.0.0.1: `ElasticsearchNode HOME DATA PORT`. HOME holds config/ and modules/. */
public final class ElasticsearchNode {
    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("path.data", arguments[1])
            .put("path.logs", arguments[1])
            .put("http.port", arguments[2])
            .build();
        LogConfigurator.configureESLogging();
        Environment environment =
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> "test");
        Lifeline.hold();
        Node node = new Node(environment);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        node.start();
        new CountDownLatch(1).await();
    }

    private static void close(Node node) {
        try {
            node.prepareForClose();
            node.close();
        } catch (IOException unclean) {
            unclean.printStackTrace();
        }
    }
}
