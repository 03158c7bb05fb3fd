{
  # Hands over to the one build definition, native/CMakeLists.txt; what results is build/Release/gradlink.node.
  "targets": [
    {
      "target_name": "gradlink",
      "type": "none",
      "actions": [
        {
          "action_name": "cmake",
          "inputs": ["scripts/native.mjs"],
          # Never made: CMake decides what is stale, so that the action must run each time.
          "outputs": ["<(PRODUCT_DIR)/always-run-cmake"],
          "action": ["node", "scripts/native.mjs"]
        }
      ]
    }
  ]
}
