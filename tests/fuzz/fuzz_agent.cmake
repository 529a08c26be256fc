foreach(name endpoint_stream agent_answer agent_config agent_journal agent_mcp agent_session)
  whit_fuzz(${name})
  target_link_libraries(fuzz_${name} PRIVATE whit_agent)
endforeach()
