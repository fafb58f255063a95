// Search runs in a worker, which browsers refuse to start from a file. There, a hidden frame takes its place: it loads
// the same script, and messages go to and fro as events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...urls) => urls.forEach(each => this.load(each))
      this.load(url).onload = () => {
        const { waiting } = this
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      }
    }

    load(url) {
      const script = this.frame.contentDocument.createElement("script")
      script.src = url
      script.async = false
      this.frame.contentDocument.documentElement.appendChild(script)
      return script
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
