import java.io.IOException;

/** Ends this JVM when its standard input ends: who started it closes the input, or is gone. */
final class Lifeline {
    private static final long GRACE_MILLIS = 20_000;

    private Lifeline() {}

    static void hold() {
        Thread reader = new Thread(Lifeline::waitForEnd, "lifeline");
        reader.setDaemon(true);
        reader.start();
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
                // nothing is said here, only that somebody is still there
            }
        } catch (IOException gone) {
            // as good as the end
        }
        Thread last = new Thread(Lifeline::halt, "last resort");
        last.setDaemon(true);
        last.start();
        System.exit(0);
    }

    /** A shutdown that hangs must not leave a process behind. */
    private static void halt() {
        try {
            Thread.sleep(GRACE_MILLIS);
        } catch (InterruptedException hurry) {
            // then at once
        }
        Runtime.getRuntime().halt(1);
    }
}
