import java.util.List;
import java.util.concurrent.CountDownLatch;

import de.bwaldvogel.mongo.MongoBackend;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** MongoDB's protocol on 127.0.0.1: `MongoNode PORT [FILE]`; what is stored goes into the file, or dies with us. */
public final class MongoNode {
    public static void main(String[] arguments) throws Exception {
        Lifeline.hold();
        MongoBackend backend = arguments.length > 1 ? new H2Backend(arguments[1]) : new MemoryBackend();
        backend.version(new Modern());
        MongoServer server = new MongoServer(backend);
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
        new CountDownLatch(1).await();
    }

    /** The library calls itself 3.6, with which today's drivers refuse to talk. */
    private static final class Modern implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        @Override
        public String toVersionString() {
            return "5.0.0";
        }

        @Override
        public int getWireVersion() {
            return 13;
        }
    }
}
