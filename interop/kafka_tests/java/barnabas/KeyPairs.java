package barnabas;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.concurrent.atomic.AtomicInteger;

/** RSA keys of tests. They are kept in files: to find the primes of one takes a second, and a test needs ten. */
public final class KeyPairs {
    private static final Path DIRECTORY = Path.of(System.getProperty("barnabas.keys", System.getProperty("java.io.tmpdir")));
    /** No test has as many. */
    private static final int COUNT = 40;
    private static final AtomicInteger NEXT = new AtomicInteger();

    private KeyPairs() {
    }

    /** Return a key pair that is another one in each of 40 calls. */
    public static KeyPair next() {
        Path file = DIRECTORY.resolve("rsa-" + NEXT.getAndIncrement() % COUNT + ".der");
        try {
            if (!Files.exists(file))
                write(file);
            KeyFactory keys = KeyFactory.getInstance("RSA");
            RSAPrivateCrtKey key = (RSAPrivateCrtKey) keys.generatePrivate(new PKCS8EncodedKeySpec(Files.readAllBytes(file)));
            return new KeyPair(keys.generatePublic(new RSAPublicKeySpec(key.getModulus(), key.getPublicExponent())), key);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void write(Path file) throws GeneralSecurityException, IOException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        Files.createDirectories(DIRECTORY);
        Path complete = Files.createTempFile(DIRECTORY, "rsa-", ".new");
        Files.write(complete, generator.generateKeyPair().getPrivate().getEncoded());
        Files.move(complete, file, StandardCopyOption.REPLACE_EXISTING);
    }
}
