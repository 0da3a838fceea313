package barnabas;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.PlaintextAuthenticationContext;

/**
 * Stands before a listener of a test whose principals a Java class decides. It asks that class who a client is, logs in
 * to Barnabas with SASL/PLAIN as that user, and hands bytes on from then on.
 */
final class LoginProxy implements AutoCloseable {
    private final String listener;
    private final int target;
    private final KafkaPrincipalBuilder builder;
    private final Users users;
    private final ServerSocket server;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    LoginProxy(String listener, int port, int target, KafkaPrincipalBuilder builder, Users users) throws IOException {
        this.listener = listener;
        this.target = target;
        this.builder = builder;
        this.users = users;
        server = new ServerSocket(port);
        daemon(this::accept);
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket client = server.accept();
                open.add(client);
                daemon(() -> serve(client));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void serve(Socket client) {
        try (client; Socket broker = new Socket("localhost", target)) {
            open.add(broker);
            client.setTcpNoDelay(true);
            broker.setTcpNoDelay(true);
            logIn(broker, userOf(client.getInetAddress()));
            Thread answers = daemon(() -> copy(broker, client));
            copy(client, broker);
            answers.join();
            open.remove(broker);
        } catch (IOException | InterruptedException over) {
            // the client sees that its connection ends
        } finally {
            open.remove(client);
        }
    }

    private String userOf(InetAddress address) throws IOException {
        KafkaPrincipal principal = builder.build(new PlaintextAuthenticationContext(address, listener));
        if (!principal.getPrincipalType().equals(KafkaPrincipal.USER_TYPE)) {
            CurrentTest.notApplicable(CurrentTest.Kind.PLUGIN, "a principal of type " + principal.getPrincipalType());
            throw new IOException("a login is of a user");
        }
        users.add(principal.getName());
        return principal.getName();
    }

    private static void logIn(Socket broker, String user) throws IOException {
        byte[] handshake = "\0\5PLAIN".getBytes(StandardCharsets.ISO_8859_1);
        ask(broker, 17, handshake);
        byte[] token = ("\0" + user + "\0" + Users.PASSWORD).getBytes(StandardCharsets.UTF_8);
        ask(broker, 36, java.nio.ByteBuffer.allocate(4 + token.length).putInt(token.length).put(token).array());
    }

    /** Send version 1 of a request, without a client id, and check that the answer begins with error code 0. */
    private static void ask(Socket broker, int key, byte[] body) throws IOException {
        DataOutputStream out = new DataOutputStream(broker.getOutputStream());
        java.nio.ByteBuffer frame = java.nio.ByteBuffer.allocate(14 + body.length).putInt(10 + body.length);
        out.write(frame.putShort((short) key).putShort((short) 1).putInt(0).putShort((short) -1).put(body).array());
        DataInputStream in = new DataInputStream(broker.getInputStream());
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        if (answer[4] != 0 || answer[5] != 0)
            throw new IOException("the login was refused: " + answer[5]);
    }

    private static void copy(Socket from, Socket to) {
        byte[] buffer = new byte[65536];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int size; (size = in.read(buffer)) >= 0; )
                out.write(buffer, 0, size);
            to.shutdownOutput();
        } catch (IOException broken) {
            closeQuietly(from);
            closeQuietly(to);
        }
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "login-proxy");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void closeQuietly(Socket socket) {
        try {
            socket.close();
        } catch (IOException already) {
            // it is closed
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        open.forEach(LoginProxy::closeQuietly);
    }

    /** The users file of the broker, which reads it anew when it changes. */
    static final class Users {
        static final String PASSWORD = "of-the-harness";
        private final Path file;
        private final Map<String, String> known = new TreeMap<>();

        Users(Path file) throws IOException {
            this.file = file;
            Files.writeString(file, "");
        }

        synchronized void add(String user) throws IOException {
            if (known.put(user, PASSWORD) != null)
                return;
            StringBuilder lines = new StringBuilder();
            known.forEach((name, password) -> lines.append(name).append('=').append(password).append('\n'));
            Path next = file.resolveSibling(file.getFileName() + ".new");
            Files.writeString(next, lines);
            Files.move(next, file, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        }
    }
}
