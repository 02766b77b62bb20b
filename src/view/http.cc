// The server itself: cpp-httplib, and who may ask. See server.h.
#include <httplib.h>
#include <signal.h>
#include <sys/random.h>

#include <array>
#include <memory>
#include <thread>

#include "view/server_module.h"

namespace weir::view {
namespace {

Result<std::string> random_token() {
  std::array<uint8_t, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return fail_errno("getrandom");
  std::string token;
  for (uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Nothing from elsewhere, and nothing of ours in somebody else's frame.
const httplib::Headers headers = {{"Cache-Control", "no-store"},
                                  {"X-Content-Type-Options", "nosniff"},
                                  {"X-Frame-Options", "DENY"},
                                  {"Referrer-Policy", "no-referrer"},
                                  {"Content-Security-Policy",
                                   "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob: data:; "
                                   "style-src 'unsafe-inline'; img-src data: "
                                   "blob:; connect-src 'self' data:; worker-src blob: data:; base-uri 'none'; form-action "
                                   "'none'; frame-ancestors 'none'"}};

// As it is. What has all of its content at once the library packs, with Brotli at its slowest: that took a second for the page, which
// does not leave the machine. `owner` keeps the text until it is sent.
void send(httplib::Response& response, const char* type, std::string_view text, std::shared_ptr<const void> owner) {
  auto part = [text, owner](size_t offset, size_t length, httplib::DataSink& sink) {
    return sink.write(text.data() + offset, length);
  };
  response.set_content_provider(text.size(), type, part);
}

void answer(const Site& site, const httplib::Request& request, httplib::Response& response) {
  Answer answer = site.answer(request.matches[1], {request.params.begin(), request.params.end()});
  response.status = answer.found ? 200 : 400;
  auto json = std::make_shared<const std::string>(std::move(answer.json));
  send(response, "application/json", *json, json);
}

// Two viewers must not share a port, which the library's own options would let them.
void exclusive(int socket) {
  int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

// Browsers keep what a page remembers (theme, last view) by its port: with the same one it is there the next time.
constexpr uint16_t usual_port = 8347;

Result<int> bind(httplib::Server& server, uint16_t port) {
  const char* host = "127.0.0.1";
  if (port == 0) {
    if (server.bind_to_port(host, usual_port)) return usual_port;
    int any = server.bind_to_any_port(host);
    if (any <= 0) return fail_errno("{}: no port is free", host);
    return any;
  }
  errno = 0;
  if (server.bind_to_port(host, port)) return port;
  if (errno == EACCES) return fail("port {}: only root may use ports below 1024; without --port a free one is taken", port);
  return fail("port {} is in use: give another with --port, or none, and a free one is taken", port);
}

Result<> serve(const Site& site) {
  // Signals are waited for by a thread of their own, and reach no other.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);

  httplib::Server server;
  server.set_socket_options(exclusive);
  server.set_tcp_nodelay(true);
  // The library gives each connection a thread until it is closed: those of a browser that only waits must not use them up.
  server.set_keep_alive_max_count(1);
  server.new_task_queue = [] { return new httplib::ThreadPool(32); };
  server.set_default_headers(headers);
  TRY(std::string token, random_token());
  TRY(int port, bind(server, site.port));
  std::string suffix = port == 80 ? "" : fmt::format(":{}", port);  // as browsers write it
  std::array<std::string, 2> hosts = {"127.0.0.1" + suffix, "localhost" + suffix};
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    std::string host = request.get_header_value("Host");
    if (host == hosts[0] || host == hosts[1]) return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/" + token + "/", [&](const httplib::Request&, httplib::Response& response) {
    send(response, "text/html; charset=utf-8", site.page, nullptr);
  });
  server.Get("/" + token + "/q/([a-z]+)",
             [&](const httplib::Request& request, httplib::Response& response) { answer(site, request, response); });
  std::jthread waiter([&] {
    int number;
    sigwait(&ends, &number);
    server.stop();
  });
  site.started(fmt::format("http://127.0.0.1:{}/{}/", port, token));
  server.listen_after_bind();
  pthread_kill(waiter.native_handle(), SIGTERM);  // (where it ended by itself)
  return {};
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const ServerModule weir_server_module{server_version, serve};

}  // namespace weir::view
