import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * Uploads a file COUNT times over HTTP/2, each time on a new connection: Upload URL FILE COUNT [expect]
 *
 * Prints the status of each, or the error.
 */
public class Upload {
    static class TrustsAll extends X509ExtendedTrustManager {
        @Override public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
        @Override public void checkClientTrusted(X509Certificate[] chain, String type) {}
        @Override public void checkServerTrusted(X509Certificate[] chain, String type) {}
        @Override public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}
        @Override public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}
        @Override public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        @Override public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
    }

    public static void main(String[] arguments) throws Exception {
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, new TrustManager[] {new TrustsAll()}, null);
        byte[] body = Files.readAllBytes(Path.of(arguments[1]));
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0]))
            .timeout(Duration.ofSeconds(60))
            .expectContinue(arguments.length > 3)
            .POST(HttpRequest.BodyPublishers.ofByteArray(body))
            .build();
        // On a busy machine a first upload takes longer to load its classes than the gateway reads an upload that it has refused.
        // So the first one does not count.
        if (arguments.length == 3) {
            try {
                HttpClient.newBuilder().sslContext(tls).build().send(request, HttpResponse.BodyHandlers.discarding());
            } catch (java.io.IOException error) {
                System.err.println("the first upload: " + error);
            }
        }
        for (int nth = 0; nth < Integer.parseInt(arguments[2]); nth++) {
            HttpClient client = HttpClient.newBuilder().sslContext(tls).build();
            try {
                HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
                boolean isHttp2 = answer.version() == HttpClient.Version.HTTP_2;
                System.out.println(isHttp2 ? answer.statusCode() : answer.version());
            } catch (Exception error) {
                System.out.println(error);
            }
        }
        System.exit(0);
    }
}
