# The rules of the house (docs/dev/ARCHITECTURE.md) as tests, so that nobody needs to remember them.
# Once is enough: sanitizers change nothing here, and they add symbols of their own.
if(NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD AND NOT WHIT_FUZZ AND NOT CMAKE_CROSSCOMPILING)
  set(house ${CMAKE_CURRENT_LIST_DIR})
  whit_script(house_headers ${house}/headers.sh)
  whit_script(house_rooms ${house}/rooms.sh)
  whit_script(house_symbols ${house}/symbols.sh $<TARGET_FILE:whit_shared>)
  whit_script(house_deps ${house}/deps.sh)
  whit_script(house_install ${house}/install.sh)
  whit_script(house_embed ${house}/embed.sh)
  whit_script(house_words ${house}/words.sh)
  whit_script(house_format ${house}/format.sh)
  whit_script(house_plain ${house}/plain.sh)
  whit_script(house_charts ${house}/charts.sh)
  # What the program links, as far as it is built here.
  set(linked)
  foreach(library whit_static whit_train whit_agent whit_code whit_compress_room whit_editor whit_endpoint whit_hub
                  whit_lang whit_memory whit_sandbox whit_server)
    if(TARGET ${library})
      list(APPEND linked $<TARGET_FILE:${library}>)
    endif()
  endforeach()
  whit_script(house_names ${house}/names.sh ${linked})
endif()
