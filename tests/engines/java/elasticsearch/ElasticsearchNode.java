import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;

/**
 * One Elasticsearch node on 127.0.0.1: `ElasticsearchNode HOME DATA PORT [NAME=VALUE…]`. HOME holds config/ and modules/.
 * The settings named at the end replace those of the configuration.
 */
public final class ElasticsearchNode {
    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Settings.Builder settings = Settings.builder()
            .put("path.home", home)
            .put("path.data", arguments[1])
            .put("path.logs", arguments[1])
            .put("http.port", arguments[2]);
        for (int given = 3; given < arguments.length; given++) {
            String[] setting = arguments[given].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        LogConfigurator.configureESLogging();
        Environment environment =
            InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), home.resolve("config"), () -> "test");
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
